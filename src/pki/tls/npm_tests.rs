//! Handshakes with what npm Eventflow made, whatever its keys are, at the time that it was made.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{ClientConfig, ServerConfig, pki_types::ServerName};

use super::*;
use crate::pki::{
    Authority, Bundle, Lifetimes, Names, authority,
    testing::{handshake::*, npm::Npm, *},
};

/// What a hub with this id makes of npm's table.
async fn hub(npm: &Npm, hub_id: &str) -> Authority {
    let names = Names { hub_id: hub_id.to_owned(), ..Names::default() };
    authority::establish(&npm.table(), &npm.vault, &names, Lifetimes::default(), npm::made_at())
        .await
        .unwrap()
}

fn server(authority: &Authority, now: SystemTime) -> Arc<ServerConfig> {
    let id = authority.hub_identity().uid();
    server_at(&server_config(authority, id, "EVENTFLOW-HUB").unwrap(), now)
}

fn client(bundle: &Bundle, now: SystemTime) -> (Arc<ClientConfig>, ServerName<'static>) {
    let (config, name) = client_config(bundle, None).unwrap();
    (client_at(&config, now), name)
}

/// npm's hub and ours beside it, npm's spoke and ours.
async fn parties(kind: &str) -> ([Authority; 2], [Bundle; 2]) {
    let npm = Npm::read(kind);
    let ours = hub(&npm, HUB_ID).await;
    let spoke = ours.issue_bundle(SPOKE_ID, vec![hub_address()], npm::made_at()).unwrap();
    ([hub(&npm, npm::HUB).await, ours], [npm.bundle(), spoke])
}

#[tokio::test]
async fn every_chain_of_npm_serves_and_dials() {
    for kind in npm::KINDS {
        let (hubs, spokes) = parties(kind).await;
        for (authority, hub_id) in hubs.iter().zip([npm::HUB, HUB_ID]) {
            for (bundle, spoke_id) in spokes.iter().zip([npm::SPOKE, SPOKE_ID]) {
                let (config, name) = client(bundle, npm::made_at());
                let (client, server) = shake(config, name, server(authority, npm::made_at())).await;
                let (client, server) = (client.unwrap(), server.unwrap());
                let seen = |connection: &rustls::CommonState| {
                    peer_uid(connection.peer_certificates().unwrap()).unwrap()
                };
                assert_eq!(seen(server.get_ref().1).as_str(), spoke_id, "{kind}");
                assert_eq!(seen(client.get_ref().1).as_str(), hub_id, "{kind}");
            }
        }
        // Hubs dial each other, by the id as it is written.
        let [npms, ours] = &hubs;
        for (from, to) in [(npms, ours), (ours, npms)] {
            let (config, name) =
                peer_config(from.hub_identity(), from.root(), to.hub_identity().uid()).unwrap();
            let config = client_at(&config, npm::made_at());
            let (client, server) = shake(config, name, server(to, npm::made_at())).await;
            client.unwrap();
            server.unwrap();
        }
    }
}

#[tokio::test]
async fn npms_chains_that_have_expired_are_refused() {
    let late = npm::made_at() + Duration::from_secs(26 * 365 * 86_400);
    for kind in npm::KINDS {
        let ([hub, _], [spoke, _]) = parties(kind).await;
        let (config, name) = client(&spoke, npm::made_at());
        let (told, error) = refused(config, name, server(&hub, late)).await;
        says(&error, &["the peer", "expired at Jul 22", "2051"]);
        says(&told, &["this side", "has expired or doesn't hold yet"]);
        let (config, name) = client(&spoke, late);
        let (error, told) = refused(config, name, server(&hub, npm::made_at())).await;
        says(&error, &["the peer", "expired at Jul 22", "2051"]);
        says(&told, &["this side", "has expired or doesn't hold yet"]);
        // And those that don't hold yet.
        let (config, name) = client(&spoke, npm::made_at() - Duration::from_secs(86_400));
        let (error, _) = refused(config, name, server(&hub, npm::made_at())).await;
        says(&error, &["the peer", "holds only from Nov 30", "compare the clocks"]);
    }
}

#[tokio::test]
async fn npms_chains_of_another_root_are_refused() {
    // All roots have the same name, and here they have keys of the same kind or of another.
    for (kind, other) in npm::KINDS.iter().zip(npm::KINDS.iter().cycle().skip(1)) {
        let ([hub, _], _) = parties(kind).await;
        let (_, [spoke, _]) = parties(other).await;
        let (config, name) = client(&spoke, npm::made_at());
        let (error, _) = refused(config, name, server(&hub, npm::made_at())).await;
        says(&error, &["the peer", "not issued under the root that this side trusts", "bundle anew"]);

        let theirs = Bundle { root: Npm::read(kind).bundle().root, ..spoke };
        let (config, name) = client(&theirs, npm::made_at());
        let (told, error) = refused(config, name, server(&hub, npm::made_at())).await;
        says(&error, &["the peer", "not issued under the root that this side trusts", "bundle anew"]);
        says(&told, &["this side", "not issued under the root that the peer trusts"]);
    }
}

#[tokio::test]
async fn a_signature_of_an_unknown_kind_is_named() {
    let ([hub, _], [spoke, _]) = parties("mixed-p256-ed448").await;
    let own = hub.hub_identity();
    let leaf = npm::with_sha224(own.chain()[0].to_vec());
    let mut masked = (*server(&hub, npm::made_at())).clone();
    masked.cert_resolver = single(vec![leaf.into(), own.chain()[1].clone()], own.key().clone_key());
    let (config, name) = client(&spoke, npm::made_at());
    let (error, told) = refused(config, name, Arc::new(masked)).await;
    says(&error, &["the peer", "signed in a way that this side can't verify", "Ed448", "issue it anew"]);
    says(&told, &["this side", "refused by the peer"]);
}
