//! Access control: a client needs the token, its requests must come from a page of this server, and must address the server
//! by a name of this machine.
//!
//! A web page can make a browser send requests to 127.0.0.1, and read the responses by DNS rebinding. So the Host
//! must be a loopback name, an Origin must equal the Host, Sec-Fetch-Site must not name another site, and the token
//! of the printed address is exchanged for a cookie that scripts cannot read and other sites do not send.
//!
//! A URL for sharing is usually a link in a message, which a browser follows from a page of another site: its
//! one-time token is accepted from other sites as well. Anyone who knows the URL could have opened it directly.

use std::net::IpAddr;
use std::sync::Mutex;

use axum::http::{HeaderMap, header};

use crate::cli::shared::context::lock;

/// Access control for all requests: the tokens, and the accepted host names.
#[derive(Debug)]
pub(super) struct Access {
    token: String,
    /// One-time tokens: for sharing, and for the browser that this program opens, as other users can see the browser's command
    /// line.
    once: Mutex<Vec<OneTimeToken>>,
    /// Name of the cookie. It is unique, as cookies ignore ports: otherwise the cookies of several servers would replace one
    /// another. A browser sends it to other servers on this machine as well when it opens their pages.
    cookie_name: String,
    cookie: String,
    is_remote: bool,
    /// Names accepted like localhost, including the address that the server listens on.
    hosts: Vec<String>,
}

/// A one-time token.
#[derive(Debug)]
struct OneTimeToken {
    token: String,
    /// `true` if the token is accepted from a link on another site.
    is_shared: bool,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Full access.
    In,
    /// The token is valid: the client gets the cookie. A browser that followed a link from another site sends the
    /// cookie only with requests that start from a page of this server.
    Exchange { is_from_elsewhere: bool },
    /// No access, and the reason.
    Out(DenyReason),
}

/// Reason for denying access to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DenyReason {
    /// No Host header, or several.
    NoHost,
    /// The Host is not a name of this machine.
    Host,
    /// The request comes from a page of another site.
    Site,
    /// The request has neither a valid token nor the cookie.
    Token,
    /// The header for programs has no valid token.
    Bearer,
}

impl DenyReason {
    /// Returns the reason as text.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NoHost => "the Host header is missing",
            Self::Host => "the Host header does not name this server",
            Self::Site => "request from another site",
            Self::Token => "open the address that the server printed",
            Self::Bearer => {
                "the header Authorization: Bearer TOKEN is missing or wrong; TOKEN is in the address that the server \
                 printed"
            }
        }
    }
}

/// Returns a text of random bytes.
fn random(bytes: usize) -> anyhow::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(|error| anyhow::anyhow!("cannot obtain random bytes: {error}"))?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the value of a header; an error if the header occurs twice.
fn single_header(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(Some(value.to_str().unwrap_or("\u{0}"))),
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Compares two texts in constant time.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl Access {
    /// Creates the access control with a random token and cookie.
    pub(super) fn new(is_remote: bool, hosts: Vec<String>) -> anyhow::Result<Self> {
        Ok(Self {
            token: random(32)?,
            once: Mutex::default(),
            cookie_name: format!("hprof_cli_{}", random(6)?),
            cookie: random(32)?,
            is_remote,
            hosts,
        })
    }

    /// Returns the token of the printed URL.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Creates a one-time token; a shared one is accepted from a link on another site as well.
    pub(super) fn token_once(&self, is_shared: bool) -> anyhow::Result<String> {
        let token = random(32)?;
        lock(&self.once).push(OneTimeToken { token: token.clone(), is_shared });
        Ok(token)
    }

    /// Returns whether a token is valid; a one-time token is used up.
    fn accept_token(&self, given: &str, is_from_elsewhere: bool) -> bool {
        let mut once = lock(&self.once);
        let is_good =
            |once: &OneTimeToken| is_same(given, &once.token) && (once.is_shared || !is_from_elsewhere);
        match once.iter().position(is_good) {
            Some(at) => {
                once.swap_remove(at);
                true
            }
            None => !is_from_elsewhere && is_same(given, &self.token),
        }
    }

    /// Returns the value of the header that sets the cookie.
    pub(super) fn set_cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name, self.cookie)
    }

    /// Checks the headers about the origin of a request. Returns whether the request is a navigation from another site.
    fn origin(&self, headers: &HeaderMap) -> Result<bool, DenyReason> {
        let is =
            |name, wanted| single_header(headers, header::HeaderName::from_static(name)) == Ok(Some(wanted));
        let Ok(Some(host)) = single_header(headers, header::HOST) else { return Err(DenyReason::NoHost) };
        if !self.is_own(host) {
            return Err(DenyReason::Host);
        }
        match single_header(headers, header::ORIGIN) {
            Ok(None) => {}
            Ok(Some(origin)) if origin == format!("http://{host}") => {}
            _ => return Err(DenyReason::Site),
        }
        match single_header(headers, header::HeaderName::from_static("sec-fetch-site")) {
            Ok(None | Some("same-origin" | "none")) => Ok(false),
            // A navigation: a script or frame of the other page could not read the response.
            Ok(Some("cross-site" | "same-site"))
                if is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document") =>
            {
                Ok(true)
            }
            _ => Err(DenyReason::Site),
        }
    }

    /// Decides about a request from a program, which sends the token in its own header. No page can make a browser send that
    /// header.
    pub(super) fn judge_program(&self, headers: &HeaderMap) -> Verdict {
        match self.origin(headers) {
            Ok(false) => {}
            Ok(true) => return Verdict::Out(DenyReason::Site),
            Err(why) => return Verdict::Out(why),
        }
        let token = single_header(headers, header::AUTHORIZATION).ok().flatten();
        match token.and_then(|token| token.split_once(' ')) {
            // The name of a scheme is the same in any case.
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && is_same(token, &self.token) => {
                Verdict::In
            }
            _ => Verdict::Out(DenyReason::Bearer),
        }
    }

    /// Decides about a request by its headers and the token in its query string.
    pub(super) fn judge(&self, headers: &HeaderMap, token: Option<&str>) -> Verdict {
        let is_from_elsewhere = match self.origin(headers) {
            Ok(is_from_elsewhere) => is_from_elsewhere,
            Err(why) => return Verdict::Out(why),
        };
        // A prefetched page may never be looked at.
        let is_early = single_header(headers, header::HeaderName::from_static("sec-purpose")) != Ok(None);
        if token.is_some_and(|token| !is_early && self.accept_token(token, is_from_elsewhere)) {
            return Verdict::Exchange { is_from_elsewhere };
        }
        if is_from_elsewhere {
            return Verdict::Out(DenyReason::Site);
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split("; "));
        let is_ours = |cookie: &str| {
            cookie
                .split_once('=')
                .is_some_and(|(name, value)| name == self.cookie_name && is_same(value, &self.cookie))
        };
        if cookies.any(is_ours) { Verdict::In } else { Verdict::Out(DenyReason::Token) }
    }

    /// Returns whether a Host header names this machine, with any port.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, port)) => (address, port),
            None => host
                .split_once(':')
                .map_or((host, ""), |(name, _)| (name, host.get(name.len()..).unwrap_or_default())),
        };
        // `parse` alone would accept a sign.
        let is_number =
            |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
        let is_bracketed = host.starts_with('[');
        let is_loopback = if is_bracketed {
            name == "::1"
        } else {
            name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
        };
        // An address cannot be rebound; a name can.
        let is_known = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
        let is_remote = self.is_remote && name.parse::<IpAddr>().is_ok();
        is_port && (is_loopback || is_known || is_remote)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn hosts_are_names_of_loopback_with_any_port() {
        let access = Access::new(false, Vec::new()).unwrap();
        for host in ["127.0.0.1", "127.0.0.1:1", "localhost:65535", "LOCALHOST", "[::1]:80", "[::1]"] {
            assert!(access.is_own(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "127.0.0.1.evil.example",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1:80:80",
            "127.0.0.1:",
            "127.0.0.1:x",
            "::1",
            "[::1",
            "[::2]",
            "[127.0.0.1]",
            "0.0.0.0",
            "192.168.0.1",
            "127.0.0.1 ",
            "localhost:-1",
            "127.0.0.1:+80",
        ] {
            assert!(!access.is_own(host), "{host}");
        }
        let remote = Access::new(true, vec!["box.example".to_owned()]).unwrap();
        assert!(remote.is_own("192.168.0.1:7000") && remote.is_own("box.example:7000"));
        assert!(!remote.is_own("evil.example"));
    }

    #[test]
    fn a_cookie_or_the_token_lets_in() {
        let access = Access::new(false, Vec::new()).unwrap();
        let cookie = access.set_cookie();
        let cookie = cookie.split(';').next().unwrap();
        let host = ("host", "127.0.0.1:7000");
        assert_eq!(access.judge(&headers(&[host, ("cookie", cookie)]), None), Verdict::In);
        assert_eq!(
            access.judge(&headers(&[host, ("cookie", &format!("a=b; {cookie}; c=d"))]), None),
            Verdict::In
        );
        assert_eq!(
            access.judge(&headers(&[host]), Some(access.token())),
            Verdict::Exchange { is_from_elsewhere: false }
        );
        let out = |all: &[(&'static str, &str)], token| {
            assert!(matches!(access.judge(&headers(all), token), Verdict::Out(_)), "{all:?}");
        };
        out(&[host], None);
        out(&[host], Some("0"));
        out(&[host, ("cookie", &cookie.replace("hprof_cli_", "hprof_cli_0"))], None);
        out(&[host, ("cookie", &format!("{cookie}0"))], None);
        out(&[("cookie", cookie)], None);
        out(&[host, host, ("cookie", cookie)], None);
        out(&[host, ("cookie", cookie), ("origin", "http://127.0.0.1:7001")], None);
        out(&[host, ("cookie", cookie), ("origin", "null")], None);
        out(&[host, ("cookie", cookie), ("sec-fetch-site", "cross-site")], None);
        out(&[host, ("cookie", cookie), ("sec-fetch-site", "same-site")], None);
        let inside = [
            host,
            ("cookie", cookie),
            ("origin", "http://127.0.0.1:7000"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(access.judge(&headers(&inside), None), Verdict::In);
    }

    #[test]
    fn a_program_has_the_token_in_a_header() {
        let access = Access::new(false, Vec::new()).unwrap();
        let host = ("host", "127.0.0.1:7000");
        let bearer = format!("Bearer {}", access.token());
        let lower = format!("bearer {}", access.token());
        let (bearer, lower) = (("authorization", bearer.as_str()), ("authorization", lower.as_str()));
        let judge = |all: &[(&'static str, &str)]| access.judge_program(&headers(all));
        assert_eq!(judge(&[host, bearer]), Verdict::In);
        assert_eq!(judge(&[host, lower]), Verdict::In);
        assert_eq!(judge(&[host, bearer, ("origin", "http://127.0.0.1:7000")]), Verdict::In);
        let cookie = access.set_cookie();
        let cookie = cookie.split(';').next().unwrap();
        for (all, why) in [
            (&[host][..], DenyReason::Bearer),
            (&[host, ("cookie", cookie)], DenyReason::Bearer),
            (&[host, ("authorization", "Bearer 0")], DenyReason::Bearer),
            (&[host, bearer, bearer], DenyReason::Bearer),
            (&[bearer], DenyReason::NoHost),
            (&[("host", "evil.example"), bearer], DenyReason::Host),
            (&[host, bearer, ("origin", "http://evil.example")], DenyReason::Site),
            (&[host, bearer, ("origin", "null")], DenyReason::Site),
            (&[host, bearer, ("sec-fetch-site", "cross-site")], DenyReason::Site),
        ] {
            assert_eq!(judge(all), Verdict::Out(why), "{all:?}");
        }
    }

    #[test]
    fn a_shared_token_lets_one_in_who_follows_a_link() {
        let access = Access::new(false, Vec::new()).unwrap();
        let host = ("host", "127.0.0.1:7000");
        let followed = [
            host,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let judge = |all: &[(&'static str, &str)], token: &str| access.judge(&headers(all), Some(token));
        let (shared, opened) = (access.token_once(true).unwrap(), access.token_once(false).unwrap());
        // Tokens not for sharing, a frame, a script, and a prefetch.
        for token in [access.token(), &opened] {
            assert_eq!(judge(&followed, token), Verdict::Out(DenyReason::Site));
        }
        let other = |at: usize, header| {
            let mut all = followed.to_vec();
            all.splice(at..=at, [header]);
            judge(&all, &shared)
        };
        assert_eq!(other(3, ("sec-fetch-dest", "iframe")), Verdict::Out(DenyReason::Site));
        assert_eq!(other(2, ("sec-fetch-mode", "no-cors")), Verdict::Out(DenyReason::Site));
        assert_eq!(other(0, ("host", "evil.example")), Verdict::Out(DenyReason::Host));
        let early = [&followed[..], &[("sec-purpose", "prefetch")]].concat();
        assert_eq!(judge(&early, &shared), Verdict::Out(DenyReason::Site));
        // Accepted once.
        assert_eq!(judge(&followed, &shared), Verdict::Exchange { is_from_elsewhere: true });
        assert_eq!(judge(&followed, &shared), Verdict::Out(DenyReason::Site));
        assert_eq!(judge(&[host], &shared), Verdict::Out(DenyReason::Token));
        assert_eq!(judge(&[host], &opened), Verdict::Exchange { is_from_elsewhere: false });
        assert_eq!(judge(&[host], &opened), Verdict::Out(DenyReason::Token));
        // The cookie alone does not admit a page of another site.
        let cookie = access.set_cookie();
        let cookie = cookie.split(';').next().unwrap();
        let all = [&followed[..], &[("cookie", cookie)]].concat();
        assert_eq!(access.judge(&headers(&all), None), Verdict::Out(DenyReason::Site));
    }
}
