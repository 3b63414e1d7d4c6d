//! A request of HTTP/2 as the server gets it: of HTTP/1.1, with the same meaning. No I/O.

use std::net::Ipv4Addr;

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, HeaderValue, TE,
    TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method, Uri, Version};

use super::fields::end_with_connection;
use crate::http::answer::Answer;
use crate::http::verdict::{Verdict, judge};

/// Tells the server that its client speaks HTTPS. Clients cannot say this themselves.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Tells the server the client's address, where it cannot see it.
const ADDRESS: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Makes the request that the server gets. `has_body`: more follows than the head. `forwarded_for`: the client's address,
/// if requests are to say it.
///
/// # Errors
/// The request gets this answer from the agent itself.
pub(super) fn for_server(
    client: Parts,
    has_body: bool,
    forwarded_for: Option<Ipv4Addr>,
) -> Result<Parts, Answer> {
    // A tunnel would be nobody's request (CONNECT).
    if client.method == Method::CONNECT {
        return Err(Answer::Bad);
    }
    let host = host(&client)?;
    let (mut request, ()) = hyper::Request::new(()).into_parts();
    request.uri = target(&client)?;
    request.method = client.method;
    request.version = Version::HTTP_11;
    let mut fields = client.headers;
    let wants_trailers = fields.get(TE).is_some_and(|value| value == "trailers");
    let length = length(&fields, has_body)?;
    end_with_connection(&mut fields);
    // No interim response is passed on to the client, so the server need not send one.
    fields.remove(EXPECT);
    remove_alike(&mut fields, &SCHEME);
    join_cookies(&mut fields);
    fields.insert(HOST, host);
    fields.insert(SCHEME, HeaderValue::from_static("https"));
    if let Some(client) = forwarded_for {
        remove_alike(&mut fields, &ADDRESS);
        let client = HeaderValue::try_from(client.to_string());
        fields.insert(ADDRESS, client.map_err(|_| Answer::Bad)?);
    }
    if wants_trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
        // RFC 9110, section 10.1.4.
        fields.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    match length {
        Some(length) => drop(fields.insert(CONTENT_LENGTH, length)),
        None if has_body => {
            let chunked = HeaderValue::from_static("chunked");
            fields.insert(TRANSFER_ENCODING, chunked);
        }
        None => (),
    }
    request.headers = fields;
    Ok(request)
}

/// The head of the request as text, as the server gets it and routes are judged.
///
/// # Errors
/// Servers could read it in different ways. The request gets this answer from the agent itself.
pub(super) fn head(request: &Parts) -> Result<Vec<u8>, Answer> {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.uri).into_bytes();
    for (name, value) in &request.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    match judge(&text) {
        Verdict::Give { .. } => Ok(text),
        Verdict::Answer(answer) => Err(answer),
        Verdict::Wait => Err(Answer::Bad),
    }
}

/// The request's target without scheme and authority, which are in other fields.
fn target(client: &Parts) -> Result<Uri, Answer> {
    let path = client.uri.path_and_query().map(PathAndQuery::as_str);
    match path {
        Some(path) if path.starts_with('/') => (),
        Some("*") if client.method == Method::OPTIONS => (),
        _ => return Err(Answer::Bad),
    }
    let path = client.uri.path_and_query().cloned().ok_or(Answer::Bad)?;
    Ok(Uri::from(path))
}

/// The host that the client wants. A field `Host` that says something else than `:authority` is an error (RFC 9113,
/// section 8.3.1): routes could go by the one, and the server by the other.
fn host(client: &Parts) -> Result<HeaderValue, Answer> {
    let mut fields = client.headers.get_all(HOST).iter();
    let (field, more) = (fields.next(), fields.next());
    let Some(authority) = client.uri.authority() else {
        return field.filter(|_| more.is_none()).cloned().ok_or(Answer::Bad);
    };
    let authority = authority.as_str();
    let is_same = |field: &HeaderValue| field.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
    if more.is_some() || authority.contains('@') || field.is_some_and(|field| !is_same(field)) {
        return Err(Answer::Bad);
    }
    HeaderValue::from_str(authority).map_err(|_| Answer::Bad)
}

/// The length of the body, if the client says it. A length that is said twice is said once.
fn length(fields: &HeaderMap, has_body: bool) -> Result<Option<HeaderValue>, Answer> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(None);
    };
    let text = length.to_str().map_err(|_| Answer::Bad)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = text.parse().map_err(|_| Answer::Bad)?;
    if !is_number || lengths.any(|other| other != length) || (!has_body && number > 0) {
        return Err(Answer::Bad);
    }
    Ok(Some(length.clone()))
}

/// HTTP/1 has one field `Cookie` (RFC 9113, section 8.2.3).
fn join_cookies(fields: &mut HeaderMap) {
    let crumbs: Vec<_> = (fields.get_all(COOKIE).iter())
        .map(HeaderValue::as_bytes)
        .collect();
    if crumbs.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        fields.insert(COOKIE, cookie);
    }
}

/// Takes away the field of this name. Servers that fill variables with fields take `_` for `-`.
fn remove_alike(fields: &mut HeaderMap, name: &HeaderName) {
    let is_alike = |given: &&HeaderName| given.as_str().replace('_', "-") == name.as_str();
    let alike: Vec<_> = fields.keys().filter(is_alike).cloned().collect();
    for name in alike {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests;
