//! Names to addresses: every answer is judged before any of them is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dynamo_rl_protocol::EndpointPolicy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::error::PolicyRefusal;
use crate::exchange::BoxFuture;

/// Looks up the addresses of a host name.
pub trait Resolver: Send + Sync {
    /// All addresses of the name, in the order in which they are tried. The future is dropped when
    /// the call's time is over.
    ///
    /// # Errors
    ///
    /// Whatever kept the look-up from answering.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's look-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(
            async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect()) },
        )
    }
}

/// A resolver that answers only if the policy allows every address of the answer.
pub(crate) struct JudgedResolver {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) policy: Arc<EndpointPolicy>,
}

impl Resolve for JudgedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, policy) = (Arc::clone(&self.resolver), Arc::clone(&self.policy));
        Box::pin(async move {
            let host = name.as_str();
            let addresses = resolver.resolve(host).await?;
            if addresses.is_empty() {
                return Err(format!("{host} has no address").into());
            }
            for &address in &addresses {
                policy.judge_address(host, address).map_err(|refusal| PolicyRefusal::ResolvedAddress {
                    host: host.to_owned(),
                    address,
                    refusal,
                })?;
            }
            // Port 0: the connector puts the URL's port there.
            let found = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}
