//! `derive(JobError)`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Data, DataEnum, DeriveInput, Field, Fields, Ident, LitStr, Member, Meta, Path, Type};

use crate::problems::{Problems, located};

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let derived = problems.take(syn::parse2(item)).map(|input| derive(&input, &mut problems));
    let errors = problems.to_compile_errors();
    quote!(#errors #derived)
}

fn derive(input: &DeriveInput, problems: &mut Problems) -> TokenStream {
    let name = &input.ident;
    let krate = krate(&input.attrs, problems);
    let private = quote!(#krate::__private);
    let of_type = mark(&input.attrs, name, problems);
    let arms = match &input.data {
        Data::Enum(data) => enum_arms(input, data, of_type.as_ref(), &private, problems),
        Data::Struct(data) => {
            let advice = advice(&input.attrs, &data.fields, of_type.as_ref(), &private, problems);
            let Advice { pattern, value } = advice;
            quote!(Self #pattern => #value,)
        }
        Data::Union(data) => {
            problems.at(data.union_token, "`derive(JobError)` goes on an enum or a struct");
            return TokenStream::new();
        }
    };
    // An empty enum has no arms, and a reference to it is not known to be impossible.
    let scrutinee = if arms.is_empty() { quote!(*self) } else { quote!(self) };
    let (generics, arguments, where_clause) = input.generics.split_for_impl();
    let predicates = where_clause.map(|clause| &clause.predicates).into_iter().flatten();
    // Of a generic error nobody but its own impl of `Error` knows for which parameters it is one.
    let is_error = (!input.generics.params.is_empty()).then(|| quote!(Self: ::std::error::Error,));
    quote! {
        #[automatically_derived]
        impl #generics #private::JobError for #name #arguments where #(#predicates,)* #is_error {
            fn do_not_retry(&self) -> ::core::option::Option<::std::borrow::Cow<'static, str>> {
                #[allow(unused_imports)]
                use #private::{
                    SourceViaAnyError as _, SourceViaBoxedJobError as _, SourceViaDynError as _, SourceViaJobError as _,
                    SourceViaNothing as _,
                };
                match #scrutinee {
                    #arms
                }
            }
        }
    }
}

fn enum_arms(
    input: &DeriveInput,
    data: &DataEnum,
    of_type: Option<&String>,
    private: &TokenStream,
    problems: &mut Problems,
) -> TokenStream {
    let mut arms = TokenStream::new();
    for variant in &data.variants {
        let mark = mark(&variant.attrs, &variant.ident, problems);
        // thiserror takes the format of the enum for variants that have none.
        let formatted = variant.attrs.iter().any(|attr| attr.path().is_ident("error"));
        let format_attrs = if formatted { &variant.attrs } else { &input.attrs };
        let advice = advice(format_attrs, &variant.fields, mark.as_ref().or(of_type), private, problems);
        let Advice { pattern, value } = advice;
        let variant = &variant.ident;
        arms.extend(quote!(Self::#variant #pattern => #value,));
    }
    arms
}

/// The fields that are taken apart, and what is said about a retry.
struct Advice {
    pattern: TokenStream,
    value: TokenStream,
}

/// What a struct or a variant says: its mark, else what its source says.
fn advice(
    format_attrs: &[Attribute],
    fields: &Fields,
    mark: Option<&String>,
    private: &TokenStream,
    problems: &mut Problems,
) -> Advice {
    for field in fields {
        for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("do_not_retry")) {
            problems.at(
                attr,
                "`#[do_not_retry]` goes on an error type or on a variant of it; a field that is its source is asked by itself",
            );
        }
    }
    let anything = quote!({ .. });
    if let Some(reason) = mark {
        let value = quote!(::core::option::Option::Some(::std::borrow::Cow::Borrowed(#reason)));
        return Advice { pattern: anything, value };
    }
    let Some((at, field)) = source(format_attrs, fields) else {
        return Advice { pattern: anything, value: quote!(#private::do_not_retry_in_sources(self)) };
    };
    let member = field.ident.clone().map_or_else(|| Member::Unnamed(at.into()), Member::Named);
    let binding = format_ident!("__source");
    let pattern = quote!({ #member: #binding, .. });
    let probe =
        |source: &Ident| quote_spanned!(located(&field.ty)=> (&&&&#private::SourceProbe(#source, self)).do_not_retry());
    let value = if is_option(&field.ty) {
        let inner = format_ident!("__inner");
        let probe = probe(&inner);
        quote!(match #binding {
            ::core::option::Option::Some(#inner) => #probe,
            ::core::option::Option::None => ::core::option::Option::None,
        })
    } else {
        probe(&binding)
    };
    Advice { pattern, value }
}

/// The field that is the source, by the rules of thiserror.
fn source<'a>(format_attrs: &[Attribute], fields: &'a Fields) -> Option<(usize, &'a Field)> {
    let has = |field: &Field, name: &str| field.attrs.iter().any(|attr| attr.path().is_ident(name));
    let transparent = format_attrs.iter().any(|attr| {
        attr.path().is_ident("error") && attr.parse_args::<Ident>().is_ok_and(|word| word == "transparent")
    });
    let find = |is: &dyn Fn(&Field) -> bool| fields.iter().enumerate().find(|(_, field)| is(field));
    find(&|field| has(field, "source") || has(field, "from"))
        .or_else(|| find(&|field| field.ident.as_ref().is_some_and(|name| name == "source")))
        .or_else(|| if transparent { find(&|field| !has(field, "backtrace")) } else { None })
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

/// The reason of `#[do_not_retry]`, if it is there.
fn mark(attrs: &[Attribute], on: &Ident, problems: &mut Problems) -> Option<String> {
    let mut marks = attrs.iter().filter(|attr| attr.path().is_ident("do_not_retry"));
    let first = marks.next()?;
    if let Some(second) = marks.next() {
        problems.at(second, "`#[do_not_retry]` is given twice");
    }
    let reason = match &first.meta {
        Meta::Path(_) => return Some(format!("{on} is marked do_not_retry")),
        Meta::List(list) => list.parse_args::<LitStr>().map(|reason| reason.value()).unwrap_or_default(),
        Meta::NameValue(_) => String::new(),
    };
    if reason.trim().is_empty() {
        problems.at(first, "write `#[do_not_retry]`, or `#[do_not_retry(\"reason\")]` with a reason for people");
    }
    Some(reason)
}

/// The path of `#[job_error(crate = "path")]`, or `::ratchet`.
fn krate(attrs: &[Attribute], problems: &mut Problems) -> TokenStream {
    let mut krate = quote!(::ratchet);
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("job_error")) {
        let read = attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("`job_error` has one option: `#[job_error(crate = \"path\")]`"));
            }
            let path = meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
            krate = quote!(#path);
            Ok(())
        });
        problems.take(read);
    }
    krate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(item: &str) -> String {
        expand(item.parse().unwrap()).to_string().replace([' ', '\n'], "")
    }

    #[test]
    fn marks_and_sources_show_in_the_arms() {
        let check = |item: &str, part: &str| {
            let expansion = expansion(item);
            assert!(expansion.contains(part), "{expansion}\nlacks {part}");
            assert!(!expansion.contains("compile_error"), "{expansion}");
        };
        let probe = "(&&&&::ratchet::__private::SourceProbe(__source,self)).do_not_retry()";
        check(
            "enum E { #[do_not_retry] A(u8) }",
            r#"Self::A{..}=>::core::option::Option::Some(::std::borrow::Cow::Borrowed("Aismarkeddo_not_retry"))"#,
        );
        check(
            "enum E { #[do_not_retry(\"no\")] A { x: u8 } }",
            r#"Self::A{..}=>::core::option::Option::Some(::std::borrow::Cow::Borrowed("no"))"#,
        );
        check(
            "#[do_not_retry(\"no\")] struct E;",
            r#"Self{..}=>::core::option::Option::Some(::std::borrow::Cow::Borrowed("no"))"#,
        );
        check("#[do_not_retry(\"all\")] enum E { #[do_not_retry(\"one\")] A, B }", "Borrowed(\"one\")");
        check(
            "#[do_not_retry(\"all\")] enum E { #[do_not_retry(\"one\")] A, B }",
            "Self::B{..}=>::core::option::Option::Some(::std::borrow::Cow::Borrowed(\"all\"))",
        );
        check("enum E { A(u8, #[source] X) }", &format!("Self::A{{1:__source,..}}=>{probe}"));
        check("enum E { A(#[from] X) }", &format!("Self::A{{0:__source,..}}=>{probe}"));
        check("enum E { A { why: u8, source: X } }", &format!("Self::A{{source:__source,..}}=>{probe}"));
        check("enum E { #[error(transparent)] A(X) }", &format!("Self::A{{0:__source,..}}=>{probe}"));
        check("#[error(transparent)] struct E(X);", &format!("Self{{0:__source,..}}=>{probe}"));
        check(
            "#[error(transparent)] enum E { A(X), #[error(\"b\")] B(Y) }",
            "Self::B{..}=>::ratchet::__private::do_not_retry_in_sources(self)",
        );
        check("enum E { A(#[source] Option<X>) }", "match__source{::core::option::Option::Some(__inner)=>");
        check("enum E { A }", "Self::A{..}=>::ratchet::__private::do_not_retry_in_sources(self)");
        check("enum E {}", "match*self{}");
        check(
            "struct E<T: Clone>(#[source] T) where T: Copy;",
            "impl<T:Clone>::ratchet::__private::JobErrorforE<T>whereT:Copy,Self:::std::error::Error,{",
        );
        check("#[job_error(crate = \"mine::r\")] struct E;", "implmine::r::__private::JobErrorforE");
    }

    #[test]
    fn misplaced_marks_are_said() {
        let check = |item: &str, part: &str| {
            let text = expand(item.parse().unwrap()).to_string();
            assert!(text.contains(part), "{text} lacks {part:?}");
        };
        check("enum E { A(#[do_not_retry] u8) }", "goes on an error type or on a variant");
        check("union U { a: u8 }", "goes on an enum or a struct");
        check("#[do_not_retry] #[do_not_retry] struct E;", "given twice");
        check("#[do_not_retry = \"x\"] struct E;", "with a reason for people");
        check("#[do_not_retry(\"\")] struct E;", "with a reason for people");
        check("#[do_not_retry(x)] struct E;", "with a reason for people");
        check("#[job_error(path = \"x\")] struct E;", "has one option");
    }
}
