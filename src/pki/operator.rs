//! The bundle that a hub writes for the people on its own machine, so that the command line works at once.

use std::{path::Path, time::SystemTime};

use tracing::{info, warn};

use super::{Authority, Bundle, Fingerprint, PkiError, Revoked, check_name, ids, unix_seconds, x509};
use crate::wire::HubAddress;

/// Reads the operator's bundle at `path`, and writes it anew (mode 0600) if it is missing, damaged, due for
/// renewal, revoked, of another root or intermediate, or names other hubs. The id stays if it can; of a revoked one
/// it doesn't.
///
/// # Errors
/// [`PkiError::File`] if it can't be written; as [`Authority::issue_spoke_leaf`].
pub fn ensure_operator_bundle(
    path: impl AsRef<Path>,
    authority: &Authority,
    spoke_name: &str,
    hubs: &[HubAddress],
    revoked: &Revoked,
    now: SystemTime,
) -> Result<Bundle, PkiError> {
    let path = path.as_ref();
    check_name(spoke_name)?;
    let mut uid = None;
    match Bundle::load(path) {
        Ok(bundle) if is_revoked(&bundle, revoked) => {
            info!(path = %path.display(), "the operator's certificate was revoked: a new one is issued");
        }
        Ok(mut bundle) => match stale(&bundle, authority, spoke_name, now) {
            Ok(None) if bundle.hubs == hubs => return Ok(bundle),
            Ok(None) => {
                hubs.clone_into(&mut bundle.hubs);
                bundle.write_atomically(path)?;
                return Ok(bundle);
            }
            Ok(Some(reason)) => {
                info!(path = %path.display(), reason, "the operator's bundle is written anew");
                uid = bundle.uid().ok().filter(|uid| x509::lies_under(uid, spoke_name));
            }
            Err(error) => warn!(path = %path.display(), %error, "the operator's bundle is written anew"),
        },
        Err(_) if !path.exists() => {}
        Err(error) => warn!(%error, "the operator's bundle is written anew"),
    }
    let uid = uid.map_or_else(|| new_operator_id(spoke_name), |uid| uid.to_string());
    let bundle = authority.issue_bundle(&uid, hubs.to_vec(), now)?;
    bundle.write_atomically(path)?;
    Ok(bundle)
}

fn is_revoked(bundle: &Bundle, revoked: &Revoked) -> bool {
    bundle.identity().is_ok_and(|identity| revoked.any_of(&Fingerprint::of_chain(identity.chain())))
}

/// The same for a bundle that is in no file: `standing`, if it can stay, else a new one.
///
/// # Errors
/// As [`Authority::issue_spoke_leaf`].
pub fn operator_bundle(
    standing: Option<&Bundle>,
    authority: &Authority,
    spoke_name: &str,
    hubs: &[HubAddress],
    revoked: &Revoked,
    now: SystemTime,
) -> Result<Bundle, PkiError> {
    check_name(spoke_name)?;
    let standing = standing.filter(|bundle| !is_revoked(bundle, revoked));
    if let Some(bundle) = standing
        && matches!(stale(bundle, authority, spoke_name, now), Ok(None))
        && bundle.hubs == hubs
    {
        return Ok(bundle.clone());
    }
    let uid = standing.and_then(|bundle| bundle.uid().ok()).filter(|uid| x509::lies_under(uid, spoke_name));
    let uid = uid.map_or_else(|| new_operator_id(spoke_name), |uid| uid.to_string());
    authority.issue_bundle(&uid, hubs.to_vec(), now)
}

/// Why a readable bundle can't stay, if so.
fn stale(
    bundle: &Bundle,
    authority: &Authority,
    spoke_name: &str,
    now: SystemTime,
) -> Result<Option<&'static str>, PkiError> {
    let identity = bundle.identity()?;
    let holds_from = bundle.holds_from()?;
    if holds_from > unix_seconds(now) {
        let ((from, now), certificate) = (x509::display_start(holds_from, now), identity.uid());
        warn!(%certificate, from, now, "the operator's certificate doesn't hold yet: the clock was set back");
    }
    Ok(if bundle.root_certificate()? != *authority.root() {
        Some("it is of another root")
    } else if identity.chain().get(1) != Some(authority.spoke_intermediate()) {
        Some("it is of another intermediate")
    } else if !x509::lies_under(identity.uid(), spoke_name) {
        Some("it is under another name")
    } else if holds_from > unix_seconds(now) {
        Some("it doesn't hold yet: the clock was set back")
    } else if bundle.renew_at()? <= now {
        Some("two thirds of its life are over")
    } else {
        bundle.check(now)?;
        None
    })
}

fn new_operator_id(spoke_name: &str) -> String {
    format!("OPERATOR-CONSOLE-{}.{}", ids::time_part(), spoke_name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests;
