//! From a function to a payload, a constructor and an impl of `Job`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, LitStr, PatType, Type};

use crate::job::function::{self, Function, Param, Returns, Role};
use crate::job::name;
use crate::job::options::JobOptions;
use crate::problems::{Problems, located};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let options = JobOptions::read(options, &mut problems);
    // Bad options alone do not hide the job: the rest of the program should not complain that it is missing.
    let option_errors = problems.to_compile_errors();

    let mut problems = Problems::default();
    let job = problems.take(syn::parse2(item)).map(|function| JobItem::new(options, function, &mut problems));
    match job {
        Some(job) if problems.is_empty() => quote!(#option_errors #job),
        _ => {
            let errors = problems.to_compile_errors();
            quote!(#option_errors #errors)
        }
    }
}

/// Everything that is known of a job.
struct JobItem {
    options: JobOptions,
    kind: String,
    function: Function,
    params: Vec<Param>,
    returns: Returns,
    /// The name of the payload struct.
    payload: Ident,
    /// The path of the facade's `__private` module.
    private: TokenStream,
}

impl JobItem {
    fn new(options: JobOptions, function: Function, problems: &mut Problems) -> Self {
        let name = &function.sig.ident;
        function::check(&function.sig, options.blocking, problems);
        let params = function::params(&function.sig, problems);
        let returns = function::returns(&function.sig, problems);
        options.check_schedule(problems);
        if let Some(times) = options.times()
            && params.iter().any(|param| matches!(param.role, Role::Payload { .. } | Role::Prev))
        {
            let text = "a job that is fired by itself has nobody to give it arguments; take them from a `State<T>`, or \
                        create the schedule at run time with `client.schedule(…)`";
            problems.at(times, text);
        }
        let kind = options.kind.as_ref().map_or_else(|| name.unraw().to_string(), LitStr::value);
        // A kind that was given has been checked where it was read.
        if options.kind.is_none()
            && let Err(problem) = name::check_kind(&kind)
        {
            problems.at(name, format!("this name cannot be the job's kind: {problem}; add `kind = \"…\"`"));
        }
        let krate = options.krate.as_ref().map_or_else(|| quote!(::ratchet), ToTokens::to_token_stream);
        let payload = name::payload_name(name);
        Self { options, kind, params, returns, payload, private: quote!(#krate::__private), function }
    }

    /// The payload arguments: name, type and the attributes of the field.
    fn fields(&self) -> impl Iterator<Item = (&Ident, &Type, &[Attribute])> {
        self.params.iter().filter_map(|param| match &param.role {
            Role::Payload { name, attrs } => Some((name, &*param.typed.ty, attrs.as_slice())),
            Role::Context { .. } | Role::State | Role::Prev => None,
        })
    }

    fn payload_struct(&self) -> TokenStream {
        let Self { payload, private, kind, .. } = self;
        let function = &self.function.sig.ident;
        let vis = &self.function.vis;
        let docs = self.docs(&format!("The payload of a `{kind}` job; [`{}`] makes it.", function.unraw()));
        let shared = self.shared_attrs();
        let serde = LitStr::new(&quote!(#private::serde).to_string().replace(' ', ""), Span::call_site());
        let fields = self.fields().map(|(name, ty, attrs)| quote!(#(#attrs)* #name: #ty));
        let payload_text = payload.to_string();
        quote! {
            #docs
            #(#shared)*
            #[derive(#private::serde::Serialize, #private::serde::Deserialize)]
            #[serde(crate = #serde)]
            // The body may use `unsafe`, as `tokio::select!` does; the payload has nothing to do with that.
            #[allow(clippy::unsafe_derive_deserialize)]
            #vis struct #payload {
                #(#fields,)*
            }

            // Arguments may be secret, and need not be `Debug`.
            #(#shared)*
            #[automatically_derived]
            impl ::core::fmt::Debug for #payload {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#payload_text).finish_non_exhaustive()
                }
            }
        }
    }

    fn constructor(&self) -> TokenStream {
        let Self { payload, kind, .. } = self;
        let vis = &self.function.vis;
        let function = &self.function.sig.ident;
        let docs = self.docs(&format!(
            "Makes a `{kind}` job, to be enqueued; [`{payload}::call`] runs its body directly, for unit tests."
        ));
        let shared = self.shared_attrs();
        let deprecated = self.function.attrs.iter().filter(|attr| attr.path().is_ident("deprecated"));
        let names = self.fields().map(|(name, ..)| name);
        let inputs = self.fields().map(|(name, ty, _)| quote!(#name: #ty));
        quote! {
            #docs
            #(#shared)*
            #(#deprecated)*
            #[must_use = "a job does nothing until it is enqueued"]
            #[allow(clippy::too_many_arguments)]
            #vis fn #function(#(#inputs),*) -> #payload {
                #payload { #(#names),* }
            }
        }
    }

    /// The body, under the payload's name.
    fn call(&self) -> TokenStream {
        let Self { payload, kind, .. } = self;
        let Function { vis, sig, body, .. } = &self.function;
        let docs = self.docs(&format!("Runs the body of a `{kind}` job directly, for unit tests."));
        let shared = self.shared_attrs();
        let asyncness = &sig.asyncness;
        let fn_token = &sig.fn_token;
        let output = &sig.output;
        let name = format_ident!("call", span = sig.ident.span());
        let inputs = self.params.iter().map(|param| &param.typed);
        let kept = self.function.attrs.iter().filter(|attr| is_kept_on_body(attr));
        quote! {
            #(#shared)*
            impl #payload {
                #docs
                #(#kept)*
                // The macro asks for `async` and for owned arguments, needed or not, and writes the docs.
                #[allow(
                    clippy::missing_errors_doc,
                    clippy::missing_panics_doc,
                    clippy::needless_pass_by_value,
                    clippy::too_many_arguments,
                    clippy::unused_async
                )]
                #vis #asyncness #fn_token #name(#(#inputs),*) #output #body
            }
        }
    }

    fn job_impl(&self) -> TokenStream {
        let Self { payload, private, kind, .. } = self;
        let shared = self.shared_attrs();
        let defaults = self.options.default_calls(private);
        let output = match &self.returns {
            Returns::Unit => quote!(()),
            Returns::Value(ty) => quote!(#ty),
            Returns::Result(ty) => function::ok_of_result(ty).map_or_else(
                || quote_spanned!(located(ty)=> <#ty as #private::ResultParts>::Ok),
                ToTokens::to_token_stream,
            ),
        };
        let states = self.params.iter().filter(|param| matches!(param.role, Role::State));
        let requirements = states.map(|param| {
            let requirement = self.state_function(&param.typed, "requirement");
            quote!(#requirement())
        });
        let run = self.run_body();
        let schedule = self.options.schedule(private, &quote!(#payload {})).map(|schedule| {
            quote! {
                fn schedule() -> ::core::option::Option<#private::Scheduled> {
                    ::core::option::Option::Some(#schedule)
                }
            }
        });
        quote! {
            #(#shared)*
            #[automatically_derived]
            impl #private::Job for #payload {
                const KIND: &'static str = #kind;
                type Output = #output;

                fn defaults() -> #private::JobDefaults {
                    #private::JobDefaults::default() #defaults
                }

                #schedule

                fn requires() -> ::std::vec::Vec<#private::Requirement> {
                    ::std::vec![#(#requirements),*]
                }

                async fn run(
                    self,
                    __ctx: #private::JobContext,
                ) -> ::core::result::Result<#output, #private::Failure> {
                    #run
                }
            }
        }
    }

    /// Fetches the states, calls the body, and turns what it returns into the job's result.
    fn run_body(&self) -> TokenStream {
        let private = &self.private;
        let mut states = TokenStream::new();
        let mut arguments = Vec::new();
        for (at, param) in self.params.iter().enumerate() {
            arguments.push(match &param.role {
                Role::Context { by_reference: true } => quote!(&__ctx),
                Role::Context { by_reference: false } => quote!(__ctx),
                Role::Payload { name, .. } => quote!(self.#name),
                Role::Prev => {
                    let variable = format_ident!("__prev_{at}");
                    let ty = &param.typed.ty;
                    let from = quote_spanned!(located(ty)=> <#ty as #private::FromPrev>::from_prev);
                    states.extend(quote!(let #variable = #from(&__ctx)?;));
                    quote!(#variable)
                }
                Role::State => {
                    let variable = format_ident!("__state_{at}");
                    let of = self.state_function(&param.typed, "of");
                    states.extend(quote!(let #variable = #of(&__ctx);));
                    quote!(#variable)
                }
            });
        }
        let call = quote!(Self::call(#(#arguments),*));
        let is_async = self.function.sig.asyncness.is_some();
        let call = if is_async { quote!(#call.await) } else { call };
        match &self.returns {
            Returns::Unit => quote! {
                #states
                #call;
                ::core::result::Result::Ok(())
            },
            Returns::Value(ty) => {
                let check = quote_spanned!(located(ty)=> <#private::PlainReturn<#ty>>::is_no_result(););
                quote! {
                    #[allow(unused_imports)]
                    use #private::IsNoResult as _;
                    #check
                    #states
                    ::core::result::Result::Ok(#call)
                }
            }
            Returns::Result(ty) => {
                let result = quote_spanned!(located(ty)=> #private::ResultParts::into_result(__returned));
                let failure =
                    quote_spanned!(located(ty)=> (&&&&#private::ErrorProbe(&__error)).way().into_failure(__error));
                quote! {
                    #[allow(unused_imports)]
                    use #private::{ViaAnyError as _, ViaDynError as _, ViaJobError as _, ViaNoError as _};
                    #states
                    let __returned = #call;
                    match #result {
                        ::core::result::Result::Ok(__output) => ::core::result::Result::Ok(__output),
                        ::core::result::Result::Err(__error) => ::core::result::Result::Err(#failure),
                    }
                }
            }
        }
    }

    /// A function that every `State<T>` has, also behind an alias.
    fn state_function(&self, typed: &PatType, function: &str) -> TokenStream {
        let private = &self.private;
        let ty = &typed.ty;
        let function = format_ident!("{function}");
        quote_spanned!(located(ty)=> <#ty as #private::Injected>::#function)
    }

    /// The user's documentation, and under it what this piece is.
    fn docs(&self, what: &str) -> TokenStream {
        let docs: Vec<_> = self.function.attrs.iter().filter(|attr| attr.path().is_ident("doc")).collect();
        let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
        quote!(#(#docs)* #gap #[doc = #what])
    }

    /// Attributes that decide whether and how everything is compiled.
    fn shared_attrs(&self) -> Vec<&Attribute> {
        self.function.attrs.iter().filter(|attr| is_shared(attr)).collect()
    }
}

impl ToTokens for JobItem {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend([self.payload_struct(), self.constructor(), self.call(), self.job_impl()]);
    }
}

fn is_shared(attr: &Attribute) -> bool {
    ["cfg", "cfg_attr", "allow"].iter().any(|name| attr.path().is_ident(name))
}

fn is_kept_on_body(attr: &Attribute) -> bool {
    !is_shared(attr) && !["doc", "deprecated"].iter().any(|name| attr.path().is_ident(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expansion without spaces.
    fn expansion(options: &str, item: &str) -> String {
        expand(options.parse().unwrap(), item.parse().unwrap()).to_string().replace([' ', '\n'], "")
    }

    #[test]
    fn a_function_leaves_a_payload_a_constructor_a_job_and_its_body() {
        let expansion = expansion(
            r#"kind = "billing.charge", max_retries = 5"#,
            "#[doc = \"Charges.\"]
             pub async fn charge(ctx: &JobContext, gateway: State<Gateway>, mut invoice: Uuid, #[serde(default)] cents: u64)
                 -> Result<Receipt, ChargeError> { body(ctx) }",
        );
        for part in [
            "#[doc=\"Charges.\"]",
            "pubstructChargeJob{invoice:Uuid,#[serde(default)]cents:u64,}",
            "pubfncharge(invoice:Uuid,cents:u64)->ChargeJob{ChargeJob{invoice,cents}}",
            "pubasyncfncall(ctx:&JobContext,gateway:State<Gateway>,mutinvoice:Uuid,cents:u64)->Result<Receipt,ChargeError>{body(ctx)}",
            "impl::ratchet::__private::JobforChargeJob",
            "constKIND:&'staticstr=\"billing.charge\";",
            "typeOutput=Receipt;",
            "JobDefaults::default().max_retries(5u32)",
            "::std::vec![<State<Gateway>as::ratchet::__private::Injected>::requirement()]",
            "Self::call(&__ctx,__state_1,self.invoice,self.cents).await",
        ] {
            assert!(expansion.contains(part), "{expansion}\nlacks {part}");
        }
    }

    #[test]
    fn options_and_forms_show_in_the_expansion() {
        let check = |options: &str, item: &str, part: &str| {
            let expansion = expansion(options, item);
            assert!(expansion.contains(part), "{expansion}\nlacks {part}");
            syn::parse_str::<syn::File>(&expand(options.parse().unwrap(), item.parse().unwrap()).to_string()).unwrap();
        };
        check("", "async fn tick() {}", "constKIND:&'staticstr=\"tick\";");
        check("", "async fn tick() {}", "typeOutput=();");
        check("", "async fn tick() {}", "structTickJob{}");
        check("", "async fn tick() -> u8 { 1 }", "typeOutput=u8;");
        check(
            "",
            "async fn tick() -> io::Result<u8> {}",
            "typeOutput=<io::Result<u8>as::ratchet::__private::ResultParts>::Ok;",
        );
        check("", "async fn tick() -> Outcome<u8, E> {}", "typeOutput=Outcome<u8,E>;");
        check("blocking", "fn tick() -> u8 { 1 }", "Ok(Self::call())");
        check("", "async fn tick(ctx: JobContext, s: State<S>) {}", "Self::call(__ctx,__state_1).await");
        check("crate = \"mine::r\"", "async fn tick() {}", "implmine::r::__private::JobforTickJob");
        check("crate = \"mine::r\"", "async fn tick() {}", "#[serde(crate=\"mine::r::__private::serde\")]");
        check("", "pub(crate) async fn r#type(r#in: u8) {}", "pub(crate)fnr#type(r#in:u8)->TypeJob");
        check("", "async fn r#type() {}", "constKIND:&'staticstr=\"type\";");
        check(
            "",
            "#[instrument] async fn tick() {}",
            "implTickJob{#[doc=\"Runsthebodyofa`tick`jobdirectly,forunittests.\"]#[instrument]",
        );
        check(
            "",
            "#[cfg(unix)] async fn tick() {}",
            "#[cfg(unix)]#[automatically_derived]impl::ratchet::__private::Job",
        );
    }

    #[test]
    fn bad_options_do_not_hide_the_job() {
        let expansion = expansion(r#"backoff = "x""#, "async fn tick() {}");
        assert!(expansion.contains("compile_error") && expansion.contains("structTickJob"), "{expansion}");
    }

    #[test]
    fn a_name_that_cannot_be_a_kind_asks_for_one() {
        let text = expand(TokenStream::new(), "async fn Tick() {}".parse().unwrap()).to_string();
        assert!(text.contains("this name cannot be the job's kind") && !text.contains("struct"), "{text}");
        let text = expand("kind = \"tick\"".parse().unwrap(), "async fn Tick() {}".parse().unwrap()).to_string();
        assert!(!text.contains("compile_error"), "{text}");
    }
}
