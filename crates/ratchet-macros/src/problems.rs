//! Compile errors: several at once, so that a user fixes them in one go, and where the user looks.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;

/// What is wrong with the input so far.
#[derive(Default)]
pub(crate) struct Problems(Option<syn::Error>);

impl Problems {
    /// Adds a problem that is seen at the tokens of `at`.
    pub(crate) fn at(&mut self, at: impl ToTokens, text: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(at, text));
    }

    /// Adds a problem.
    pub(crate) fn add(&mut self, problem: syn::Error) {
        match &mut self.0 {
            None => self.0 = Some(problem),
            Some(problems) => problems.combine(problem),
        }
    }

    /// The value of a result; its problem is added.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The `compile_error!`s; nothing if all is well.
    pub(crate) fn to_compile_errors(&self) -> TokenStream {
        self.0.as_ref().map(syn::Error::to_compile_error).unwrap_or_default()
    }
}

/// Where `at` stands, for code of ours that the compiler may complain about.
///
/// The names in it stay ours: a type that came through a `macro_rules!` would otherwise hide our variables.
pub(crate) fn located(at: impl ToTokens) -> Span {
    Span::call_site().located_at(at.span())
}
