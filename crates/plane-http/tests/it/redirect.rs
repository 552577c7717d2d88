//! Redirects: shown to the caller, never followed.

use plane_http::{CallError, Exchange, PolicyRefusal};

use crate::peer::{HostilePeer, get, ok, post, socket};

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = HostilePeer::answering(ok("{}")).await;
    for status in [300, 301, 302, 303, 307, 308, 399] {
        let raw =
            format!("HTTP/1.1 {status} Go\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url("/x"));
        let peer = HostilePeer::answering(raw).await;
        for request in [get(peer.url("/x")), post(peer.url("/x"))] {
            let reply = socket().call(request).await.unwrap();
            assert_eq!(reply.status, status);
            let error = reply.success_object().unwrap_err();
            assert!(matches!(
                &error,
                CallError::RefusedByPolicy { refusal: PolicyRefusal::Redirect { status: found }, .. }
                    if *found == status
            ));
            assert_eq!(error.status(), Some(status));
            assert!(!error.is_never_sent());
        }
    }
    assert_eq!(target.connections(), 0);
}
