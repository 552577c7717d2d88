//! The same bytes end the same way over sockets and in memory.

use plane_http::{Exchange, Request};

use crate::memory::{Fixed, memory};
use crate::peer::{HostilePeer, get, post, socket};

/// How a call ended, without the words, which come from different parsers.
async fn end(exchange: &dyn Exchange, request: Request) -> String {
    match exchange.call(request).await {
        Ok(reply) => format!("{} {:?} {:?}", reply.status, reply.content_type, reply.body),
        Err(plane_http::CallError::RefusedByPolicy { refusal, .. }) => format!("{refusal:?}"),
        Err(error) => format!("{error:?}").split(' ').next().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn sockets_and_memory_judge_alike() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let flood = "a: b\r\n".repeat(100);
    for raw in [
        format!("{ok}content-length: 2\r\n\r\n{{}}"),
        format!("{ok}content-type: text/plain\r\n\r\n{{}}"),
        format!("{ok}\r\n"),
        format!("{ok}Content-Length: 8\r\n\r\n12345678"),
        format!("{ok}content-length: 9\r\n\r\n123456789"),
        format!("{ok}\r\n123456789"),
        format!("{ok}content-length: 3\r\n\r\n{{}}"),
        format!("{ok}content-length: 2\r\ncontent-length: 2\r\n\r\n{{}}"),
        format!("{ok}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!("{ok}content-length: 2, 2\r\n\r\n{{}}"),
        format!("{ok}content-length: +2\r\n\r\n{{}}"),
        format!("{ok}content-length: -1\r\n\r\n{{}}"),
        format!("{ok}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
        format!("{ok}transfer-encoding: chunked, gzip\r\n\r\n{{}}"),
        format!("{ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{ok}content-encoding: gzip\r\n\r\n{{}}"),
        format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n"),
        format!("{chunked}1\r\n{{\r\n1\r\n}}\r\n0\r\nx: y\r\n\r\n"),
        format!("{chunked}2\r\n{{}}\r\n"),
        format!("{chunked}2\r\n{{}}X\r\n0\r\n\r\n"),
        format!("{chunked}zz\r\n{{}}\r\n0\r\n\r\n"),
        format!("{chunked}9\r\n123456789\r\n0\r\n\r\n"),
        "HTTP/1.0 200 OK\r\n\r\n{}".to_owned(),
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n".to_owned(),
        "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        "HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        "HTTP/1.1 200 OK\ncontent-length: 2\n\n{}".to_owned(),
        format!("{ok}{flood}\r\n{{}}"),
        format!("{ok}{flood}a: b\r\n\r\n{{}}"),
        format!("{ok}a: b\r\n folded\r\n\r\n{{}}"),
        format!("{ok}a : b\r\n\r\n{{}}"),
        format!("{ok}a: b\u{e9}\u{202e}\r\n\r\n{{}}"),
        format!("{ok}content-le"),
        "{}".to_owned(),
        String::new(),
    ] {
        let peer = HostilePeer::answering(raw.clone()).await;
        for request in [get(peer.url("/x")), post(peer.url("/x"))] {
            let request = Request { body_limit: 8, ..request };
            let over_sockets = end(&socket(), request.clone()).await;
            let in_memory = end(&memory(Fixed::answered(&raw)), request).await;
            assert_eq!(over_sockets, in_memory, "{raw:?}");
        }
    }
}
