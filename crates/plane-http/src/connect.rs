//! The last check before a connection is used: which address it reached.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use dynamo_rl_protocol::EndpointPolicy;
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use tower_layer::Layer;
use tower_service::Service;

use crate::error::PolicyRefusal;

type BoxError = Box<dyn Error + Send + Sync>;

tokio::task_local! {
    /// The call on whose behalf a connection is opened; the client's connector has no argument for it.
    static PROGRESS: Arc<Progress>;
}

/// How far the call has come.
#[derive(Debug)]
pub(crate) struct Progress {
    host: String,
    is_connected: AtomicBool,
}

impl Progress {
    pub(crate) fn new(host: String) -> Arc<Self> {
        Arc::new(Self { host, is_connected: AtomicBool::new(false) })
    }

    /// Whether a new connection was handed to the client for this call. While it was not, and no
    /// connection is ever reused, nothing can have been written.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Acquire)
    }

    /// Runs a call so that the connector can tell how far it came.
    pub(crate) async fn watch<F: Future>(self: &Arc<Self>, call: F) -> F::Output {
        PROGRESS.scope(Arc::clone(self), call).await
    }
}

/// Wraps the client's connector.
#[derive(Clone)]
pub(crate) struct JudgedConnect {
    pub(crate) policy: Arc<EndpointPolicy>,
}

impl<S> Layer<S> for JudgedConnect {
    type Service = JudgedConnector<S>;

    fn layer(&self, connector: S) -> Self::Service {
        JudgedConnector { connector, policy: Arc::clone(&self.policy) }
    }
}

/// A connector whose connections reached an allowed address.
#[derive(Clone)]
pub(crate) struct JudgedConnector<S> {
    connector: S,
    policy: Arc<EndpointPolicy>,
}

impl<S, R> Service<R> for JudgedConnector<S>
where
    S: Service<R>,
    S::Response: Connection,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: R) -> Self::Future {
        // Read here and not in the future: the client calls inside the call's own task, but may
        // finish a connection that lost the race against a pooled one in another.
        let progress = PROGRESS.try_with(Arc::clone);
        let connecting = self.connector.call(target);
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let progress = progress?;
            let connection = connecting.await.map_err(Into::into)?;
            judge(&policy, &progress.host, &connection)?;
            progress.is_connected.store(true, Ordering::Release);
            Ok(connection)
        })
    }
}

/// Judges the address that a connection reached.
fn judge(policy: &EndpointPolicy, host: &str, connection: &impl Connection) -> Result<(), PolicyRefusal> {
    let mut extras = http::Extensions::new();
    connection.connected().get_extras(&mut extras);
    let Some(reached) = extras.get::<HttpInfo>() else {
        return Err(PolicyRefusal::UnknownAddress { host: host.to_owned() });
    };
    let address = reached.remote_addr().ip();
    policy.judge_address(host, address).map_err(|refusal| PolicyRefusal::ConnectedAddress {
        host: host.to_owned(),
        address,
        refusal,
    })
}

#[cfg(test)]
mod tests {
    use dynamo_rl_protocol::EndpointRefusal;
    use hyper_util::client::legacy::connect::HttpConnector;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// Connects to a listener on loopback as if every earlier check had let the address pass.
    async fn connect(policy: EndpointPolicy) -> (Result<(), BoxError>, bool, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: http::Uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let layer = JudgedConnect { policy: Arc::new(policy) };
        let progress = Progress::new("engine.example".to_owned());
        let mut connector = layer.layer(HttpConnector::new());
        let connected = progress.watch(async { connector.call(uri).await.map(drop) }).await;
        let mut written = Vec::new();
        listener.accept().await.unwrap().0.read_to_end(&mut written).await.unwrap();
        (connected, progress.is_connected(), written)
    }

    #[tokio::test]
    async fn connected_address_outside_the_policy_is_closed_before_a_byte() {
        let (connected, is_connected, written) = connect(EndpointPolicy::private()).await;
        let error = connected.unwrap_err();
        let refusal = error.downcast_ref::<PolicyRefusal>().unwrap();
        assert!(matches!(
            refusal,
            PolicyRefusal::ConnectedAddress { host, refusal: EndpointRefusal::Loopback { .. }, .. }
                if host == "engine.example"
        ));
        assert!(refusal.is_before_sending());
        assert!(!is_connected && written.is_empty());
    }

    #[tokio::test]
    async fn connected_address_inside_the_policy_passes() {
        let (connected, is_connected, _) = connect(EndpointPolicy::private().with_loopback()).await;
        assert!(connected.is_ok() && is_connected);
    }

    #[test]
    fn connection_without_an_address_is_refused() {
        use hyper_util::client::legacy::connect::Connected;

        struct Anonymous;
        impl Connection for Anonymous {
            fn connected(&self) -> Connected {
                Connected::new()
            }
        }
        let refusal = judge(&EndpointPolicy::private(), "engine.example", &Anonymous).unwrap_err();
        assert!(matches!(refusal, PolicyRefusal::UnknownAddress { .. }));
    }
}
