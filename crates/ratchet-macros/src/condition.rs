//! `#[condition]`: a function that tells whether a branch is taken.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, Ident, ItemFn, LitStr, Path, ReturnType, Token, Type};

use crate::job::name::check_kind;
use crate::problems::{Problems, located};

/// What the kinds of conditions begin with.
const KIND_PREFIX: &str = "ratchet.when.";

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let options = problems.take(syn::parse2::<ConditionOptions>(options)).unwrap_or_default();
    let function = problems.take(syn::parse2::<ItemFn>(item));
    let condition = function.and_then(|function| read(&function, &options, &mut problems));
    let errors = problems.to_compile_errors();
    quote!(#condition #errors)
}

#[derive(Default)]
struct ConditionOptions {
    name: Option<LitStr>,
    krate: Option<Path>,
}

impl Parse for ConditionOptions {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        for option in Punctuated::<Assignment, Token![,]>::parse_terminated(input)? {
            match option.key.to_string().as_str() {
                "name" => options.name = Some(option.value),
                "crate" => options.krate = Some(option.value.parse()?),
                other => {
                    let text = format!("`{other}` is no option of `#[condition]`; there are `name` and `crate`");
                    return Err(syn::Error::new(option.key.span(), text));
                }
            }
        }
        Ok(options)
    }
}

struct Assignment {
    key: Ident,
    value: LitStr,
}

impl Parse for Assignment {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self { key, value: input.parse()? })
    }
}

fn read(function: &ItemFn, options: &ConditionOptions, problems: &mut Problems) -> Option<TokenStream> {
    let sig = &function.sig;
    if let Some(asyncness) = &sig.asyncness {
        problems.at(asyncness, "a condition judges a result that is already there; remove `async`");
    }
    if !sig.generics.params.is_empty() {
        problems.at(&sig.generics, "a condition has no generic parameters: it judges results of one type");
    }
    let input = if let [FnArg::Typed(typed)] = sig.inputs.iter().collect::<Vec<_>>()[..] {
        Some(&*typed.ty)
    } else {
        problems.at(&sig.inputs, "a condition takes one argument: the result that it judges, like `receipt: &Receipt`");
        None
    };
    let ReturnType::Type(_, output) = &sig.output else {
        problems.at(&sig.ident, "a condition tells yes or no; let it return `bool`, or a `Result<bool, E>`");
        return None;
    };
    let name = options.name.as_ref().map_or_else(|| sig.ident.unraw().to_string(), LitStr::value);
    let kind = format!("{KIND_PREFIX}{name}");
    if let Err(problem) = check_kind(&kind) {
        match &options.name {
            Some(given) => problems.at(given, problem),
            None => {
                problems.at(&sig.ident, format!("this cannot be a condition's name: {problem}; add `name = \"…\"`"));
            }
        }
    }
    let input = input?;
    problems.is_empty().then(|| write(function, options, input, output, &kind))
}

fn write(function: &ItemFn, options: &ConditionOptions, input: &Type, output: &Type, kind: &str) -> TokenStream {
    let krate = options.krate.as_ref().map_or_else(|| quote!(::ratchet), ToTokens::to_token_stream);
    let private = quote!(#krate::__private);
    let ItemFn { attrs, vis, sig, block } = function;
    let name = &sig.ident;
    let (inputs, returns) = (&sig.inputs, &sig.output);
    let is_doc = |attr: &&Attribute| attr.path().is_ident("doc");
    let docs: Vec<_> = attrs.iter().filter(is_doc).collect();
    let others: Vec<_> = attrs.iter().filter(|attr| !is_doc(attr)).collect();
    let what = format!("The condition `{kind}`: name it in `.when({name}, …)` and in `conditions![{name}]`.");
    let (owned, argument) = match input {
        Type::Reference(reference) => (&*reference.elem, quote!(__input)),
        owned => (owned, quote!(::core::clone::Clone::clone(__input))),
    };
    let called = quote!(Self::call(#argument));
    let is_bool = matches!(output, Type::Path(path) if path.path.is_ident("bool"));
    let told = if is_bool {
        quote!(::core::result::Result::Ok(#called))
    } else {
        let result = quote_spanned!(located(output)=> #private::ResultParts::into_result(__returned));
        let failure =
            quote_spanned!(located(output)=> (&&&&#private::ErrorProbe(&__error)).way().into_failure(__error));
        quote! {
            #[allow(unused_imports)]
            use #private::{ViaAnyError as _, ViaDynError as _, ViaJobError as _, ViaNoError as _};
            let __returned = #called;
            match #result {
                ::core::result::Result::Ok(__told) => ::core::result::Result::Ok(__told),
                ::core::result::Result::Err(__error) => ::core::result::Result::Err(#failure),
            }
        }
    };
    quote! {
        #(#docs)*
        #[doc = ""]
        #[doc = #what]
        // The function's own name, so that it reads as one where it is used.
        #[allow(non_camel_case_types)]
        #[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
        #vis struct #name;

        impl #name {
            #(#docs)*
            #[doc = ""]
            #[doc = "The function itself, for unit tests."]
            #(#others)*
            #[allow(clippy::missing_errors_doc, clippy::needless_pass_by_value, clippy::trivially_copy_pass_by_ref)]
            #vis fn call(#inputs) #returns #block
        }

        #[automatically_derived]
        impl #private::ResultCondition for #name {
            const KIND: &'static str = #kind;
            type Input = #owned;

            fn holds(__input: &#owned) -> ::core::result::Result<bool, #private::Failure> {
                #told
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(options: &str, item: &str) -> String {
        expand(options.parse().unwrap(), item.parse().unwrap()).to_string().replace([' ', '\n'], "")
    }

    #[test]
    fn a_function_leaves_a_value_of_its_own_name_and_its_body() {
        let expansion = expansion("", "pub fn is_large(receipt: &Receipt) -> bool { receipt.cents > 7 }");
        for part in [
            "pubstructis_large;",
            "pubfncall(receipt:&Receipt)->bool{receipt.cents>7}",
            "impl::ratchet::__private::ResultConditionforis_large",
            "constKIND:&'staticstr=\"ratchet.when.is_large\";",
            "typeInput=Receipt;",
            "Ok(Self::call(__input))",
        ] {
            assert!(expansion.contains(part), "{expansion}\nlacks {part}");
        }
    }

    #[test]
    fn what_cannot_be_a_condition_is_refused_in_words() {
        let check = |options: &str, item: &str, text: &str| {
            let expansion = expand(options.parse().unwrap(), item.parse().unwrap()).to_string();
            assert!(expansion.contains("compile_error") && expansion.contains(text), "{expansion}\nlacks {text}");
        };
        check("", "async fn f(a: &u8) -> bool { true }", "remove `async`");
        check("", "fn f() -> bool { true }", "a condition takes one argument");
        check("", "fn f(a: u8, b: u8) -> bool { true }", "a condition takes one argument");
        check("", "fn f(a: &u8) {}", "a condition tells yes or no");
        check("", "fn Large(a: &u8) -> bool { true }", "this cannot be a condition's name");
        check("name = \"A\"", "fn f(a: &u8) -> bool { true }", "only a-z");
        check("title = \"a\"", "fn f(a: &u8) -> bool { true }", "there are `name` and `crate`");
    }
}
