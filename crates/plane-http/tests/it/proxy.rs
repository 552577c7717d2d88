//! Proxies named in the environment. The environment of this process is left alone: the test runs
//! itself in a child process.

use std::env;
use std::process::Command;

use plane_http::Exchange;

use crate::peer::{HostilePeer, get, ok, socket};

/// Set in the child only.
const CHILD: &str = "PLANE_HTTP_PROXY_CHILD";
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

#[tokio::test(flavor = "multi_thread")]
async fn environment_proxies_are_ignored() {
    if env::var_os(CHILD).is_some() {
        return in_child().await;
    }
    let proxy = HostilePeer::answering(ok("{\"from\":\"proxy\"}")).await;
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "proxy::environment_proxies_are_ignored"]).env(CHILD, "1");
    child.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
    for variable in VARIABLES {
        child.env(variable, proxy.url("/"));
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // Exactly the call of the ordinary client below.
    assert_eq!(proxy.connections(), 1);
}

async fn in_child() {
    let target = HostilePeer::answering(ok("{\"from\":\"target\"}")).await;
    let reply = socket().call(get(target.url("/x"))).await.unwrap();
    assert_eq!(reply.success_object().unwrap()["from"], "target");
    // The proof that the environment would have led astray: an ordinary client reaches the proxy.
    let body = reqwest::Client::new().get(target.url("/x")).send().await.unwrap().text().await.unwrap();
    assert_eq!(body, "{\"from\":\"proxy\"}");
    assert_eq!(target.connections(), 1);
}
