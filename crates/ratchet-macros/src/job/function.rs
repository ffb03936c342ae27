//! The function under `#[job]`: what its parameters are for and what it returns.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Ident, Pat, PatType, PathArguments, PathSegment, ReturnType,
    Signature, Token, Type, Visibility,
};

use crate::problems::Problems;

/// `jobs![…]` takes constructors of at most this many arguments.
const PAYLOAD_ARGUMENTS_MAX: usize = 12;

/// A function, its body unread: it need not be complete for an editor to know the job.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let misplaced = |span| syn::Error::new(span, "`#[job]` goes on a free `async fn`");
        if !starts_a_function(input) {
            return Err(misplaced(input.span()));
        }
        let sig: Signature = input.parse()?;
        match input.parse()? {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => Ok(Self { attrs, vis, sig, body }),
            _ => Err(syn::Error::new(sig.span(), "a job needs a body")),
        }
    }
}

fn starts_a_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    // `const`, `unsafe` and `extern "C"` are refused later, with words of their own.
    while ahead.peek(Token![const])
        || ahead.peek(Token![async])
        || ahead.peek(Token![unsafe])
        || ahead.peek(Token![extern])
    {
        if ahead.parse::<syn::Abi>().is_err() && ahead.call(Ident::parse_any).is_err() {
            return false;
        }
    }
    ahead.peek(Token![fn])
}

/// A parameter and what it is for.
pub(crate) struct Param {
    /// As it stood, without the attributes that were meant for us.
    pub(crate) typed: PatType,
    pub(crate) role: Role,
}

pub(crate) enum Role {
    /// `&JobContext`, or `JobContext` itself.
    Context { by_reference: bool },
    /// `State<T>`.
    State,
    /// `Prev<T>`.
    Prev,
    /// Stored with the job, under this name and with these attributes.
    Payload { name: Ident, attrs: Vec<Attribute> },
}

/// What the function returns.
pub(crate) enum Returns {
    /// Nothing.
    Unit,
    /// A value, always.
    Value(Type),
    /// A `Result`, under any name that ends so.
    Result(Type),
}

/// Refuses functions that cannot be jobs, whatever their parameters are.
pub(crate) fn check(sig: &Signature, blocking: Option<Span>, problems: &mut Problems) {
    match (&sig.asyncness, blocking) {
        (None, None) => problems.at(
            sig.fn_token,
            "a job is an `async fn`; write `async fn`, or `#[job(blocking)]` if the function blocks its thread",
        ),
        (Some(asyncness), Some(_)) => problems.at(
            asyncness,
            "`#[job(blocking)]` is for a plain `fn` that blocks its thread; remove `async` here or `blocking` above",
        ),
        _ => {}
    }
    if let Some(constness) = &sig.constness {
        problems.at(constness, "a job cannot be a `const fn`; remove `const`");
    }
    if let Some(unsafety) = &sig.unsafety {
        problems.at(unsafety, "a job cannot be `unsafe`: the engine calls it; put an `unsafe` block into the body");
    }
    if let Some(abi) = &sig.abi {
        problems.at(abi, "a job cannot be an `extern` function; call that one from the body");
    }
    let is_lifetime = |param: &GenericParam| matches!(param, GenericParam::Lifetime(_));
    if sig.generics.params.is_empty() {
        if let Some(clause) = &sig.generics.where_clause {
            problems.at(clause, "a job has no generic parameters, so it has nothing to say `where` about");
        }
    } else if sig.generics.params.iter().all(is_lifetime) {
        problems
            .at(&sig.generics, "a job has no lifetime parameters; write `&JobContext` and owned types without them");
    } else {
        problems.at(
            &sig.generics,
            "a job has no generic parameters: it is stored under one kind and read back as one type; write one function for each type",
        );
    }
}

/// The parameters, each with its role; those that have none are told to `problems`.
pub(crate) fn params(sig: &Signature, problems: &mut Problems) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    for input in &sig.inputs {
        let typed = match input {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                problems
                    .at(receiver, "a job is a free function, so it has no `self`; take a `State<T>` for what it needs");
                continue;
            }
        };
        let Some(param) = problems.take(param(typed.clone())) else { continue };
        let is_context = |param: &Param| matches!(param.role, Role::Context { .. });
        if is_context(&param) && params.iter().any(is_context) {
            problems.at(typed, "a job has one context; remove this parameter");
            continue;
        }
        let is_prev = |param: &Param| matches!(param.role, Role::Prev);
        if is_prev(&param) && params.iter().any(is_prev) {
            let text = "a job has one `Prev`; after several steps it is a tuple: `Prev<(A, B)>`";
            problems.at(typed, text);
            continue;
        }
        params.push(param);
    }
    if let Some(variadic) = &sig.variadic {
        problems.at(variadic, "a job has a fixed list of parameters; take a `Vec`");
    }
    let mut payload = params.iter().filter(|param| matches!(param.role, Role::Payload { .. }));
    if let Some(one_too_many) = payload.nth(PAYLOAD_ARGUMENTS_MAX) {
        problems.at(
            &one_too_many.typed,
            format!("a job has at most {PAYLOAD_ARGUMENTS_MAX} payload arguments; put some of them into a struct"),
        );
    }
    params
}

fn param(mut typed: PatType) -> syn::Result<Param> {
    let problem = |at: &dyn ToTokens, text: &str| Err(syn::Error::new_spanned(at, text));
    let marked = take_attrs(&mut typed.attrs, &["state"]);
    if let Some(attr) = marked.first() {
        attr.meta.require_path_only()?;
        return Ok(Param { typed, role: Role::State });
    }
    if contains_impl(&typed.ty) {
        return problem(&typed.ty, "a job's arguments are stored, so each has one type; name it in place of `impl`");
    }
    match last_segment(&typed.ty) {
        Some(last) if last.ident == "JobContext" => {
            return Ok(Param { typed, role: Role::Context { by_reference: false } });
        }
        Some(last) if is_state(last) => return Ok(Param { typed, role: Role::State }),
        Some(last) if is_prev(last) => return Ok(Param { typed, role: Role::Prev }),
        _ => {}
    }
    if let Type::Reference(reference) = ungrouped(&typed.ty) {
        match last_segment(&reference.elem) {
            Some(last) if last.ident == "JobContext" => {
                if let Some(mutability) = &reference.mutability {
                    return problem(mutability, "the context is shared; take `&JobContext`");
                }
                return Ok(Param { typed, role: Role::Context { by_reference: true } });
            }
            Some(last) if is_state(last) => {
                return problem(&typed.ty, "take a `State<T>` by value: it is a shared pointer, cheap to hand out");
            }
            _ => {}
        }
    }
    let attrs = take_attrs(&mut typed.attrs, &["serde", "doc"]);
    let name = match &*typed.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        pat => {
            return problem(
                pat,
                "a job's argument is stored under its name; write a plain name here and take it apart in the body",
            );
        }
    };
    if borrows(&typed.ty) {
        let owned = owned_in_place_of(&typed.ty);
        let text = format!("a job's arguments are stored, so they must be owned; take {owned}");
        return problem(&typed.ty, &text);
    }
    Ok(Param { typed, role: Role::Payload { name, attrs } })
}

/// What the function returns; types that cannot be stored are told to `problems`.
pub(crate) fn returns(sig: &Signature, problems: &mut Problems) -> Returns {
    let ReturnType::Type(_, ty) = &sig.output else { return Returns::Unit };
    if contains_impl(ty) {
        problems.at(ty, "a job's result is stored, so it has one type; name it in place of `impl`");
        return Returns::Unit;
    }
    match ungrouped(ty) {
        Type::Never(_) => {
            problems.at(ty, "a job has an end; remove `-> !`, or start a task of your own");
            Returns::Unit
        }
        Type::Reference(_) => {
            problems.at(ty, format!("a job's result is stored, so it must be owned; return {}", owned_in_place_of(ty)));
            Returns::Unit
        }
        plain if last_segment(plain).is_some_and(|last| last.ident.to_string().ends_with("Result")) => {
            Returns::Result(plain.clone())
        }
        plain => Returns::Value(plain.clone()),
    }
}

/// The `T` of a `Result<T, E>`, which an alias with fewer parameters does not show.
///
/// Named directly it keeps the error out of the job's public face: that one may be private.
pub(crate) fn ok_of_result(ty: &Type) -> Option<&Type> {
    let last = last_segment(ty).filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.len(), arguments.args.first()) {
        (2, Some(GenericArgument::Type(ok))) => Some(ok),
        _ => None,
    }
}

fn take_attrs(attrs: &mut Vec<Attribute>, names: &[&str]) -> Vec<Attribute> {
    attrs.extract_if(.., |attr| names.iter().any(|name| attr.path().is_ident(name))).collect()
}

/// Without the invisible groups and the parentheses that a `macro_rules!` or a person may have put around it.
fn ungrouped(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            _ => return ty,
        }
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ungrouped(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

/// `Prev<T>`, as above.
fn is_prev(last: &PathSegment) -> bool {
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let mut arguments = arguments.args.iter();
    last.ident == "Prev" && matches!((arguments.next(), arguments.next()), (Some(GenericArgument::Type(_)), None))
}

/// `State<T>`; a type called `State` without a parameter is somebody else's.
fn is_state(last: &PathSegment) -> bool {
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let mut arguments = arguments.args.iter();
    last.ident == "State" && matches!((arguments.next(), arguments.next()), (Some(GenericArgument::Type(_)), None))
}

fn contains_impl(ty: &Type) -> bool {
    any_token(ty.to_token_stream(), &|token| matches!(token, TokenTree::Ident(ident) if ident == "impl"))
}

/// Whether a reference or an elided lifetime stands anywhere in the type. `Cow<'static, str>` is owned well enough.
fn borrows(ty: &Type) -> bool {
    let tokens = ty.to_token_stream();
    any_token(tokens.clone(), &|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '&'))
        || tokens.to_string().contains("'_")
}

fn any_token(tokens: TokenStream, is: &dyn Fn(&TokenTree) -> bool) -> bool {
    tokens.into_iter().any(|token| match &token {
        TokenTree::Group(group) => any_token(group.stream(), is),
        token => is(token),
    })
}

/// What to write in place of a borrowed type.
fn owned_in_place_of(ty: &Type) -> String {
    let Type::Reference(reference) = ungrouped(ty) else {
        return "a type without references".to_owned();
    };
    match ungrouped(&reference.elem) {
        Type::Slice(slice) if !borrows(&slice.elem) => format!("`Vec<{}>`", compact(&slice.elem)),
        elem if borrows(elem) => "a type without references".to_owned(),
        elem => match last_segment(elem).map(|last| last.ident.to_string()).as_deref() {
            Some("str") => "`String`".to_owned(),
            Some("Path") => "`PathBuf`".to_owned(),
            _ => format!("`{}`", compact(elem)),
        },
    }
}

fn compact(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "").replace(',', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(function: &str) -> (Vec<String>, String) {
        let sig: Signature = syn::parse_str(function).unwrap();
        let mut problems = Problems::default();
        check(&sig, None, &mut problems);
        let params = params(&sig, &mut problems);
        returns(&sig, &mut problems);
        let role = |param: &Param| match &param.role {
            Role::Context { by_reference: true } => "&ctx".to_owned(),
            Role::Context { by_reference: false } => "ctx".to_owned(),
            Role::State => "state".to_owned(),
            Role::Prev => "prev".to_owned(),
            Role::Payload { name, .. } => name.to_string(),
        };
        (params.iter().map(role).collect(), problems.to_compile_errors().to_string())
    }

    #[test]
    fn parameters_are_known_by_their_type() {
        let check = |inputs: &str, expected: &[&str]| {
            let (roles, problems) = roles(&format!("async fn f({inputs})"));
            assert_eq!(problems, "", "{inputs}");
            assert_eq!(roles, expected, "{inputs}");
        };
        check("", &[]);
        check("ctx: &JobContext, gateway: State<Gateway>, a: u8", &["&ctx", "state", "a"]);
        check("a: u8, ctx: ratchet::JobContext, b: Vec<u8>", &["a", "ctx", "b"]);
        check("_: &ratchet::JobContext, _: ratchet::State<(A, B)>", &["&ctx", "state"]);
        check("#[state] gateway: Alias", &["state"]);
        check("mut a: String, r#type: u8", &["a", "r#type"]);
        check("to: State, from: geo::State<A, B>", &["to", "from"]);
        check("a: u8, before: ratchet::Prev<(A, B)>, prev: Prev", &["a", "prev", "prev"]);
        check("name: Cow<'static, str>, job: <X as Y>::JobContext", &["name", "job"]);
    }

    #[test]
    fn what_cannot_be_a_job_is_said() {
        let check = |function: &str, part: &str| {
            let (_, problems) = roles(function);
            assert!(problems.contains(part), "{function}: {problems:?} lacks {part:?}");
        };
        check("fn f()", "a job is an `async fn`");
        check("const fn f()", "cannot be a `const fn`");
        check("async unsafe fn f()", "cannot be `unsafe`");
        check("async extern \"C\" fn f()", "cannot be an `extern` function");
        check("async fn f<T>(a: T)", "one function for each type");
        check("async fn f<const N: usize>()", "one function for each type");
        check("async fn f<'a>(ctx: &'a JobContext)", "no lifetime parameters");
        check("async fn f() where u8: Copy", "nothing to say `where` about");
        check("async fn f(self)", "it has no `self`");
        check("async fn f(&mut self, a: &str)", "take `String`");
        check("async fn f(a: &[u8])", "take `Vec<u8>`");
        check("async fn f(a: &Path)", "take `PathBuf`");
        check("async fn f(a: &Map<K, V>)", "take `Map<K, V>`");
        check("async fn f(a: Vec<&str>)", "take a type without references");
        check("async fn f(a: &&str)", "take a type without references");
        check("async fn f(a: Cow<'_, str>)", "take a type without references");
        check("async fn f(a: &mut JobContext)", "take `&JobContext`");
        check("async fn f(a: JobContext, b: &JobContext)", "a job has one context");
        check("async fn f(a: &State<T>)", "take a `State<T>` by value");
        check("async fn f(a: impl Display)", "in place of `impl`");
        check("async fn f(a: Vec<impl Display>)", "in place of `impl`");
        check("async fn f((a, b): (u8, u8))", "a plain name");
        check("async fn f(_: u8)", "a plain name");
        check("async fn f(ref a: u8)", "a plain name");
        check("async fn f(#[state(1)] a: u8)", "unexpected token");
        check("async fn f() -> impl Display", "in place of `impl`");
        check("async fn f() -> Result<(), impl Error>", "in place of `impl`");
        check("async fn f() -> &'static str", "return `String`");
        check("async fn f() -> !", "a job has an end");
        let thirteen = (0..13).map(|i| format!("a{i}: u8")).collect::<Vec<_>>().join(", ");
        check(&format!("async fn f({thirteen})"), "at most 12 payload arguments");
    }

    #[test]
    fn a_body_need_not_be_complete() {
        let function: Function = syn::parse_str("pub async fn f(a: u8) { let x = a. }").unwrap();
        assert_eq!(function.sig.ident, "f");
    }

    #[test]
    fn other_items_are_refused() {
        let refusal = |item| syn::parse_str::<Function>(item).err().map(|problem| problem.to_string());
        for item in ["struct S;", "pub mod m {}", "impl S {}", "const X: u8 = 1;", "unsafe impl Send for S {}"] {
            assert_eq!(refusal(item).as_deref(), Some("`#[job]` goes on a free `async fn`"), "{item}");
        }
        assert_eq!(refusal("async fn f();").as_deref(), Some("a job needs a body"));
    }
}
