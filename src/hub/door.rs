//! The hub's admin HTTP: bound while the hub starts, served once it is up, found by a file in the data folder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{HubError, folder::AdminFile, home::Home};
use crate::{
    admin::{self, AdminConfig, AdminState, Bound},
    config::AdminSettings,
};

/// An address that is ours. Whoever connects already, waits.
#[derive(Debug)]
pub struct Threshold {
    bound: Bound,
    file: Option<AdminFile>,
}

/// Takes the address and tells it in the data folder, if there is one; none if it is turned off.
///
/// # Errors
/// If the address can't be bound, or the folder can't be written.
pub fn bind(config: &AdminSettings, home: &Home) -> Result<Option<Threshold>, HubError> {
    home.forget_admin()?;
    if !config.enabled {
        return Ok(None);
    }
    let bound = admin::bind(AdminConfig { addr: SocketAddr::new(config.ip, config.port) })?;
    let file = home.tell_admin(reachable(bound.addr()))?;
    Ok(Some(Threshold { bound, file }))
}

impl Threshold {
    /// Serves from now on.
    ///
    /// # Errors
    /// If the system lets nobody listen any more.
    pub fn open(self, state: AdminState) -> Result<Door, HubError> {
        let addr = self.bound.addr();
        let server = self.bound.serve(state)?;
        let handle = server.handle();
        actix_rt::spawn(server);
        Ok(Door { handle, addr, _file: self.file })
    }
}

/// An admin HTTP that is served. The file goes with it.
#[derive(Debug)]
pub struct Door {
    handle: actix_web::dev::ServerHandle,
    /// Where it is.
    pub addr: SocketAddr,
    _file: Option<AdminFile>,
}

impl Door {
    /// Ends it; requests that are under way have a moment.
    pub async fn close(self) {
        self.handle.stop(true).await;
    }
}

/// An address by which this machine reaches a socket that is bound to this one.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_on_all_addresses_is_reached_by_loopback() {
        let reached = |addr: &str| reachable(addr.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:7"), "127.0.0.1:7");
        assert_eq!(reached("[::]:7"), "[::1]:7");
        assert_eq!(reached("10.0.0.7:7"), "10.0.0.7:7");
    }
}
