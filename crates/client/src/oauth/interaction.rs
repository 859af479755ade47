//! User interaction for an authorization, and the redirect back (OAuth 2.1, section 4.1; RFC 8252, section 7.3).

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode, header};
use reqwest::Url;
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

use super::{AuthError, Secret, code, fetch::Fetcher};
use rehearse_net::{Body, ConnectionHandle, ConnectionLimit, Request, Response, Shutdown, accept};

const PATH: &str = "/callback";
/// How long to wait until the browser has the page.
const GOODBYE: Duration = Duration::from_secs(2);

/// How a user is asked.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Interaction {
    /// Not at all: an authorization that needs a user fails.
    #[default]
    None,
    /// With a browser on this machine.
    Browser(Browser),
    /// Not needed: the authorization server redirects without a user, as those of tests do. The redirect is read and
    /// not opened.
    Headless {
        /// The redirect URI of the client.
        redirect_uri: String,
    },
}

/// A browser that is redirected to a port of this machine.
#[derive(Clone)]
pub struct Browser {
    /// Shows the URL to the user or opens it; see [`open_url`](super::open_url).
    pub show: Arc<dyn Fn(&str) + Send + Sync>,
    /// The port on 127.0.0.1, for clients whose registration requires one; 0 is any.
    pub port: u16,
    /// How long to wait for the user.
    pub limit: Duration,
}

/// Waits for the redirect.
#[derive(Debug)]
pub(super) struct Callback<'a> {
    pub(super) redirect_uri: String,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Listening(TcpListener, &'a Browser),
    Headless,
}

impl Browser {
    /// A browser with any port, and a limit of five minutes.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Browser {
        Browser { show: Arc::new(show), port: 0, limit: Duration::from_secs(300) }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("port", &self.port).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Interaction {
    /// Starts to listen, at the URL of the last time if possible.
    ///
    /// # Errors
    /// [`AuthError::InteractionRequired`], and [`AuthError::Invalid`] if the port cannot be listened on.
    pub(super) async fn prepare(&self, before: Option<&str>) -> Result<Callback<'_>, AuthError> {
        match self {
            Interaction::None => Err(AuthError::InteractionRequired),
            Interaction::Headless { redirect_uri } => {
                Ok(Callback { redirect_uri: redirect_uri.clone(), kind: Kind::Headless })
            }
            Interaction::Browser(browser) => {
                let known = before.and_then(|uri| Url::parse(uri).ok()?.port()).filter(|_| browser.port == 0);
                let listener = match known {
                    Some(port) => match listen(port).await {
                        Ok(listener) => Ok(listener),
                        Err(_) => listen(0).await,
                    },
                    None => listen(browser.port).await,
                };
                let wrong = |error: io::Error| AuthError::Invalid(format!("cannot listen for the browser: {error}"));
                let listener = listener.map_err(wrong)?;
                let address = listener.local_addr().map_err(wrong)?;
                Ok(Callback {
                    redirect_uri: format!("http://{address}{PATH}"),
                    kind: Kind::Listening(listener, browser),
                })
            }
        }
    }
}

impl Callback<'_> {
    /// Asks the user, and returns the code.
    ///
    /// # Errors
    /// [`AuthError::TimedOut`], [`AuthError::InteractionRequired`] if a headless authorization server needs a user, and
    /// the errors of [`code::Request::code`].
    pub(super) async fn code(self, request: &Arc<code::Request>, fetcher: &Fetcher) -> Result<Secret, AuthError> {
        match self.kind {
            Kind::Headless => {
                let redirect = Url::parse(&request.redirect_uri);
                let redirect = redirect.map_err(|error| AuthError::Invalid(error.to_string()))?;
                let place = |url: &Url| (url.origin(), url.path().to_owned());
                let answer = fetcher.follow_redirects(&request.url, |url| place(url) == place(&redirect)).await?;
                request.code(&answer)
            }
            Kind::Listening(listener, browser) => {
                let shutdown = Shutdown::default();
                let _guard = shutdown.kill.clone().drop_guard();
                let (sender, mut answers) = mpsc::channel(1);
                let base = Url::parse(&request.redirect_uri).map_err(|error| AuthError::Invalid(error.to_string()))?;
                let request_here = request.clone();
                let service = move |asked: Request, _: &ConnectionHandle| {
                    let (answer, page) = answer_to(&asked, &base, &request_here);
                    let sender = sender.clone();
                    async move {
                        if let Some(answer) = answer {
                            // The first response is used.
                            let _ = sender.try_send(answer);
                        }
                        page
                    }
                };
                let accepting = accept(listener, ConnectionLimit::default(), shutdown.clone(), service);
                (browser.show)(request.url.as_str());
                let answered = async {
                    tokio::select! {
                        answer = answers.recv() => answer,
                        () = accepting => None,
                    }
                };
                let answer = timeout(browser.limit, answered).await;
                shutdown.end(GOODBYE).await;
                match answer {
                    Ok(Some(answer)) => answer,
                    Ok(None) => Err(AuthError::InteractionRequired),
                    Err(_) => Err(AuthError::TimedOut(browser.limit)),
                }
            }
        }
    }
}

async fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).await
}

type Answer = Result<Secret, AuthError>;

/// The result in a request of the browser, and the page for it. The page contains nothing of the request.
fn answer_to(asked: &Request, base: &Url, request: &code::Request) -> (Option<Answer>, Response) {
    if asked.uri().path() != PATH {
        return (None, page(StatusCode::NOT_FOUND, "There is nothing here."));
    }
    if asked.method() != Method::GET {
        return (None, page(StatusCode::METHOD_NOT_ALLOWED, "This is not an authorization response."));
    }
    let mut url = base.clone();
    url.set_query(asked.uri().query());
    if !request.is_answered_by(&url) {
        return (None, page(StatusCode::BAD_REQUEST, "This is the answer to something else. Nothing has happened."));
    }
    match request.code(&url) {
        Ok(code) => (Some(Ok(code)), page(StatusCode::OK, "It is authorized. You can close this window.")),
        Err(error) => {
            let text = "It is not authorized. The program that asked for it says why.";
            (Some(Err(error)), page(StatusCode::BAD_REQUEST, text))
        }
    }
}

fn page(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::Whole(Some(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let value = http::HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, value("no-store"));
    headers.insert(header::CONNECTION, value("close"));
    response
}
