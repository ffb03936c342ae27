//! The options of `#[job(…)]`.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Meta, Path, Token};

use crate::duration::{Backoff, parse_backoff, parse_interval, parse_timeout};
use crate::job::name;
use crate::problems::Problems;

const KNOWN: &str = "`kind`, `queue`, `priority`, `max_retries`, `backoff`, `timeout`, `resource`, `blocking`, `cron`, `every`, \
                     `zone`, `dst`, `misfire`, `overlap`, `service`, `breaker` and `crate`";
/// Most retries of one job. As in `ratchet_core::limits`; a test compares them.
const RETRIES_MAX: u32 = 10_000;
const PRIORITIES: [&str; 5] = ["Lowest", "Low", "Normal", "High", "Critical"];

/// What was asked for; `None` leaves the default to the engine.
#[derive(Default)]
pub(crate) struct JobOptions {
    pub(crate) kind: Option<LitStr>,
    pub(crate) blocking: Option<Span>,
    /// Where the facade is, if not at `::ratchet`.
    pub(crate) krate: Option<Path>,
    queue: Option<LitStr>,
    priority: Option<Ident>,
    max_retries: Option<u32>,
    backoff: Option<Backoff>,
    timeout: Option<Duration>,
    resource: Option<LitStr>,
    times: Option<Times>,
    zone: Option<LitStr>,
    dst: Option<LitStr>,
    misfire: Option<LitStr>,
    overlap: Option<LitStr>,
    service: Option<LitStr>,
    breaker: Option<LitStr>,
}

/// When the job is fired by itself.
enum Times {
    Cron(LitStr),
    Every(LitStr, Duration),
}

impl JobOptions {
    /// Reads what it can; the rest is told to `problems`.
    pub(crate) fn read(tokens: TokenStream, problems: &mut Problems) -> Self {
        let mut options = Self::default();
        let Some(metas) = problems.take(split.parse2(tokens)) else { return options };
        let mut seen = Vec::new();
        for meta in metas {
            let option = path_text(meta.path());
            if seen.contains(&option) {
                problems.at(meta.path(), format!("`{option}` is given twice"));
                continue;
            }
            seen.push(option);
            if let Err(problem) = options.set(&meta) {
                problems.add(problem);
            }
        }
        options
    }

    fn set(&mut self, meta: &Meta) -> syn::Result<()> {
        let option = path_text(meta.path());
        match option.as_str() {
            "kind" => self.kind = Some(checked(text(meta, "billing.charge")?, name::check_kind)?),
            "queue" => self.queue = Some(checked(text(meta, "billing")?, name::check_queue)?),
            "priority" => self.priority = Some(priority(&text(meta, "high")?)?),
            "max_retries" => self.max_retries = Some(max_retries(meta)?),
            "backoff" => self.backoff = Some(read_text(&text(meta, "exponential 2s")?, parse_backoff)?),
            "timeout" => self.timeout = Some(read_text(&text(meta, "30s")?, parse_timeout)?),
            "resource" => self.resource = Some(text(meta, "printer")?),
            "cron" | "every" if self.times.is_some() => {
                return Err(syn::Error::new_spanned(meta.path(), "a job has `cron` or `every`, not both"));
            }
            "cron" => self.times = Some(Times::Cron(text(meta, "0 0 2 * * ?")?)),
            "every" => {
                let text = text(meta, "5m")?;
                let interval = read_text(&text, parse_interval)?;
                self.times = Some(Times::Every(text, interval));
            }
            "zone" => self.zone = Some(text(meta, "Europe/Berlin")?),
            "dst" => self.dst = Some(text(meta, "gap:skip, overlap:last")?),
            "misfire" => self.misfire = Some(text(meta, "fire_once")?),
            "overlap" => self.overlap = Some(text(meta, "skip")?),
            "service" => self.service = Some(text(meta, "payments")?),
            "breaker" => self.breaker = Some(breaker(text(meta, "external-api")?)?),
            "crate" => self.krate = Some(text(meta, "my_crate::ratchet")?.parse_with(Path::parse_mod_style)?),
            "blocking" => match meta {
                Meta::Path(path) => self.blocking = Some(path.segments[0].ident.span()),
                _ => return Err(syn::Error::new_spanned(meta, "`blocking` stands alone: `#[job(blocking)]`")),
            },
            _ => {
                let text = format!("`{option}` is no option of `#[job]`; there are {KNOWN}");
                return Err(syn::Error::new_spanned(meta.path(), text));
            }
        }
        Ok(())
    }

    /// The times at which the job is fired by itself, as a text of the user's.
    pub(crate) fn times(&self) -> Option<&LitStr> {
        self.times.as_ref().map(|times| match times {
            Times::Cron(text) | Times::Every(text, _) => text,
        })
    }

    /// Refuses what only a schedule has, if there is none.
    pub(crate) fn check_schedule(&self, problems: &mut Problems) {
        let only = [("zone", &self.zone), ("dst", &self.dst), ("misfire", &self.misfire), ("overlap", &self.overlap)];
        for (option, text) in only {
            if let (Some(text), None) = (text, &self.times) {
                problems.at(text, format!("`{option}` says something about a schedule; add `cron` or `every`"));
            }
        }
        for (option, text) in [("zone", &self.zone), ("dst", &self.dst)] {
            if let (Some(text), Some(Times::Every(..))) = (text, &self.times) {
                problems.at(text, format!("`{option}` is for `cron`; an interval knows no clock on the wall"));
            }
        }
    }

    /// The schedule of a job, which is an expression.
    pub(crate) fn schedule(&self, private: &TokenStream, job: &TokenStream) -> Option<TokenStream> {
        let begun = match self.times.as_ref()? {
            Times::Cron(expression) => quote!(#private::Scheduled::cron(&#job, #expression)),
            Times::Every(_, interval) => {
                let millis = u64::try_from(interval.as_millis()).expect("durations were checked against ten years");
                quote!(#private::Scheduled::every(&#job, ::core::time::Duration::from_millis(#millis)))
            }
        };
        let zone = self.zone.iter().map(|zone| quote!(.zone(#zone)));
        let dst = self.dst.iter().map(|dst| quote!(.dst(#dst)));
        let misfire = self.misfire.iter().map(|misfire| quote!(.misfire(#misfire)));
        let overlap = self.overlap.iter().map(|overlap| quote!(.overlap(#overlap)));
        Some(quote!(#begun #(#zone)* #(#dst)* #(#misfire)* #(#overlap)*))
    }

    /// Calls on a `JobDefaults`, one for every option that was given.
    pub(crate) fn default_calls(&self, private: &TokenStream) -> TokenStream {
        let queue = self.queue.iter().map(|queue| quote!(.queue(#queue)));
        let priority = self.priority.iter().map(|priority| quote!(.priority(#private::Priority::#priority)));
        let max_retries = self.max_retries.iter().map(|retries| quote!(.max_retries(#retries)));
        let backoff = self.backoff.iter().map(|backoff| {
            let backoff = match backoff {
                Backoff::None => quote!(None),
                Backoff::Fixed(wait) => call_with("Fixed", *wait),
                Backoff::Exponential(base) => call_with("Exponential", *base),
            };
            quote!(.backoff(#private::Backoff::#backoff))
        });
        let timeout = self.timeout.iter().map(|timeout| call_with("timeout", *timeout)).map(|call| quote!(.#call));
        let resource = self.resource.iter().map(|resource| quote!(.resource(#resource)));
        let blocking = self.blocking.iter().map(|_| quote!(.blocking()));
        let service = self.service.iter().map(|service| quote!(.service(#service)));
        let breaker = self.breaker.iter().map(|profile| {
            let profile = format_ident!("{}", profile.value().to_uppercase().replace('-', "_"), span = profile.span());
            quote!(.breaker(#private::BreakerConfig::#profile))
        });
        quote! {
            #(#queue)* #(#priority)* #(#max_retries)* #(#backoff)* #(#timeout)* #(#resource)* #(#blocking)* #(#service)*
            #(#breaker)*
        }
    }
}

/// `name(Duration)`.
fn call_with(name: &str, duration: Duration) -> TokenStream {
    let name = format_ident!("{name}");
    let millis = u64::try_from(duration.as_millis()).expect("durations were checked against ten years");
    quote!(#name(::core::time::Duration::from_millis(#millis)))
}

/// The options, still unread.
fn split(input: ParseStream<'_>) -> syn::Result<Vec<Meta>> {
    let mut metas = Vec::new();
    while !input.is_empty() {
        if input.peek(Lit) {
            let text = format!("an option has a name, such as `kind = \"billing.charge\"`; there are {KNOWN}");
            return Err(syn::Error::new(input.span(), text));
        }
        metas.push(input.call(Meta::parse)?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(metas)
}

/// The text of `option = "text"`.
fn text(meta: &Meta, example: &str) -> syn::Result<LitStr> {
    if let Some(Lit::Str(text)) = literal(meta) {
        return Ok(text.clone());
    }
    let option = path_text(meta.path());
    Err(syn::Error::new_spanned(meta, format!("`{option}` takes a text: `{option} = {example:?}`")))
}

fn literal(meta: &Meta) -> Option<&Lit> {
    let Meta::NameValue(pair) = meta else { return None };
    let mut value = &pair.value;
    // A literal that went through a `macro_rules!` sits in an invisible group.
    while let Expr::Group(group) = value {
        value = &group.expr;
    }
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

fn read_text<T>(text: &LitStr, read: impl Fn(&str) -> Result<T, String>) -> syn::Result<T> {
    read(&text.value()).map_err(|problem| syn::Error::new(text.span(), problem))
}

fn checked(text: LitStr, check: impl Fn(&str) -> Result<(), String>) -> syn::Result<LitStr> {
    read_text(&text, check)?;
    Ok(text)
}

fn breaker(profile: LitStr) -> syn::Result<LitStr> {
    const PROFILES: [&str; 4] = ["default", "fast", "critical", "external-api"];
    if PROFILES.contains(&profile.value().as_str()) {
        return Ok(profile);
    }
    let text = format!("there is no breaker `{}`; there are {}", profile.value(), PROFILES.join(", "));
    Err(syn::Error::new_spanned(profile, text))
}

fn priority(text: &LitStr) -> syn::Result<Ident> {
    read_text(text, |word| {
        PRIORITIES
            .iter()
            .find(|priority| priority.eq_ignore_ascii_case(word))
            .map(|priority| Ident::new(priority, Span::call_site()))
            .ok_or_else(|| {
                format!("{word:?} is no priority; use \"lowest\", \"low\", \"normal\", \"high\" or \"critical\"")
            })
    })
}

fn max_retries(meta: &Meta) -> syn::Result<u32> {
    let Some(Lit::Int(number)) = literal(meta) else {
        return Err(syn::Error::new_spanned(meta, "`max_retries` takes a whole number: `max_retries = 5`"));
    };
    match number.base10_parse::<u32>() {
        Ok(retries) if retries <= RETRIES_MAX => Ok(retries),
        _ => {
            Err(syn::Error::new_spanned(number, format!("`{number}` is too many retries; the limit is {RETRIES_MAX}")))
        }
    }
}

fn path_text(path: &Path) -> String {
    quote!(#path).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tokens: &str) -> (JobOptions, String) {
        let mut problems = Problems::default();
        let options = JobOptions::read(tokens.parse().unwrap(), &mut problems);
        (options, problems.to_compile_errors().to_string())
    }

    #[test]
    fn the_limit_of_retries_is_that_of_the_core() {
        assert_eq!(RETRIES_MAX, ratchet_core::limits::RETRIES_MAX);
        let priorities = ratchet_core::Priority::ALL.map(|priority| format!("{priority:?}"));
        assert_eq!(PRIORITIES.map(str::to_owned), priorities);
    }

    #[test]
    fn options_become_calls_on_the_defaults() {
        let check = |tokens: &str, calls: &str| {
            let (options, problems) = read(tokens);
            assert_eq!(problems, "", "{tokens}");
            assert_eq!(options.default_calls(&quote!(p)).to_string().replace(' ', ""), calls, "{tokens}");
        };
        check("", "");
        check(r#"kind = "a.b", crate = "x::y","#, "");
        check(r#"queue = "mail""#, r#".queue("mail")"#);
        check(r#"priority = "HIGH""#, ".priority(p::Priority::High)");
        check("max_retries = 10_000", ".max_retries(10000u32)");
        check(r#"backoff = "none""#, ".backoff(p::Backoff::None)");
        check(r#"backoff = "fixed 500ms""#, ".backoff(p::Backoff::Fixed(::core::time::Duration::from_millis(500u64)))");
        check(
            r#"backoff = "exponential 2s""#,
            ".backoff(p::Backoff::Exponential(::core::time::Duration::from_millis(2000u64)))",
        );
        check(r#"timeout = "1m""#, ".timeout(::core::time::Duration::from_millis(60000u64))");
        check(r#"resource = "printer""#, r#".resource("printer")"#);
        check("blocking", ".blocking()");
    }

    #[test]
    fn bad_options_are_named_all_at_once() {
        let check = |tokens: &str, part: &str| {
            let (_, problems) = read(tokens);
            assert!(problems.contains(part), "{tokens}: {problems} lacks {part:?}");
        };
        check("retries = 3", "`retries` is no option of `#[job]`");
        check("a::b", "`a::b` is no option");
        check(r#""billing""#, "an option has a name");
        check("kind = \"a\", kind = \"b\"", "`kind` is given twice");
        check("kind = 3", "`kind` takes a text");
        check("kind", "`kind` takes a text");
        check("kind(3)", "`kind` takes a text");
        check("kind = \"A\"", "holds 'A' at position 1");
        check("queue = \"\"", "is empty");
        check("priority = \"urgent\"", "is no priority");
        check("max_retries = \"3\"", "takes a whole number");
        check("max_retries = 10_001", "the limit is 10000");
        check("max_retries = 99999999999", "the limit is 10000");
        check("timeout = 30", "`timeout` takes a text");
        check("blocking = true", "`blocking` stands alone");
        check("cron = \"0 0 2 * * ?\", every = \"5m\"", "`cron` or `every`, not both");
        check("every = \"10ms\"", "the least is 1s");
        check("timeout = \"0s\", backoff = \"x\"", "the least is 1ms");
        check("timeout = \"0s\", backoff = \"x\"", "is no backoff");
    }
}
