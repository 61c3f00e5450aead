//! What a link changes of groups.

use super::{Connection, v1::FULL_WAIT};
use crate::{
    actors::{deliveries::ChangeGroup, outlet::MOST_AMENDMENTS},
    event::{Fault, Group, code},
    wire::{GroupAction, Req},
};

impl Connection {
    /// Sends on a change of a group; what makes a group lose something needs the right to delete.
    pub(super) fn change_group(&mut self, req: Req, group: Option<Group>, action: GroupAction) {
        if let Err(fault) = self.ask_for_change(req, group, action) {
            self.outlet.answer(req, Err(fault));
        }
    }

    fn ask_for_change(&self, req: Req, group: Option<Group>, action: GroupAction) -> Result<(), Fault> {
        if !matches!(action, GroupAction::Set(_)) && !self.config.may_delete {
            return Err(Fault::refused(
                code::NOT_ALLOWED,
                "this hub lets no spoke seek, purge, remove or unbind: its operator may set `spokes.may_delete`",
            ));
        }
        let Some(permit) = self.outlet.amendment() else {
            return Err(Fault::retryable(
                code::HUB_BUSY,
                format!("this link has {MOST_AMENDMENTS} changes waiting: wait for their answers"),
                FULL_WAIT,
            ));
        };
        let (outlet, uid) = (self.outlet.clone(), self.uid.clone());
        let sent = self.core.deliveries.offer(ChangeGroup { outlet, uid, req, permit, group, action });
        self.taken(sent)
    }
}
