//! A context for each request of an axum server.

use std::{
    convert::Infallible,
    ops::{Deref, DerefMut},
};

use axum_core::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use milieu_context::{Context, Environment, Policy, Threads};

use crate::Contexts;

/// The context of a request, for a handler to ask for.
///
/// The state of the router holds [`Contexts`], or can be turned into them.
///
/// ```
/// use axum::{Router, routing::get};
/// use milieu::{Contexts, Environment, Milieu, RequestContext, Text, layer};
///
/// layer! { struct Session(String) = "session"; }
///
/// #[derive(Environment)]
/// struct Settings {
///     #[key("/sw/%session%/language", default = "en")]
///     language: Text,
/// }
///
/// async fn page(mut cx: RequestContext<Settings>) -> String {
///     cx.enter(Session("anna".into())).language.to_string()
/// }
///
/// fn router(milieu: &Milieu) -> Result<Router, milieu::Error> {
///     let contexts = Contexts::new(milieu.context::<Settings>()?);
///     Ok(Router::new().route("/", get(page)).with_state(contexts))
/// }
/// ```
pub struct RequestContext<E: Environment, P: Policy = Threads>(
    /// The context itself.
    pub Context<E, P>,
);

impl<E: Environment, P: Policy> Deref for RequestContext<E, P> {
    type Target = Context<E, P>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<E: Environment, P: Policy> DerefMut for RequestContext<E, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<E, P, S> FromRequestParts<S> for RequestContext<E, P>
where
    E: Environment,
    P: Policy,
    S: Send + Sync,
    Contexts<E, P>: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(RequestContext(Contexts::from_ref(state).context()))
    }
}
