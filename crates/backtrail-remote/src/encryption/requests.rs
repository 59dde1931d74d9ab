//! Requests, as the replica below sees them.

use std::collections::HashMap;

use backtrail::replica::{Answer, LogKey, ObjectPlace, Order, Replica, ReplicaError, Request};

use super::errors::{away, named, unfit};
use super::{EncryptedReplica, Opened, answers};

/// How often a lease is tried again because others created the log at the same moment.
const TRIES: usize = 3;

impl<R: Replica> EncryptedReplica<R> {
    pub(super) fn answer(&self, request: &Request) -> Result<Answer, ReplicaError> {
        match request {
            // They carry nothing that has to be hidden.
            Request::Status { log }
            | Request::Renew { log, .. }
            | Request::Release { log, .. }
            | Request::Delete { log, .. }
            | Request::Trails { log } => self.open_answer(log, self.inner.ask(request)?),
            Request::Packs { .. } | Request::Condemn { .. } | Request::RemovePacks { .. } => {
                self.inner.ask(request)
            }
            Request::Purge { log } => {
                let answer = self.inner.ask(request)?;
                self.keyring.forget(log);
                Ok(answer)
            }
            Request::Lease {
                log,
                holder,
                ttl_ms,
                wrapped_key,
            } => {
                if !wrapped_key.is_empty() {
                    return Err(unfit(format!("{} is encrypted twice", named(log))));
                }
                self.lease(log, holder, *ttl_ms)
            }
            Request::Append { log, .. } | Request::Begin { log, .. } => self.write(log, request),
            Request::Read {
                log, trail, order, ..
            } => self.read(log, *trail, *order, request),
            Request::List { .. } => self.list(request),
            Request::Changes { .. } => self.changes(request),
            Request::Locate { log, ids } => self.locate(log, ids),
            Request::SealPack { log, objects } => self.seal_pack(log, objects),
            _ => Err(unfit(
                "this program is too old to encrypt this request; update it".to_owned(),
            )),
        }
    }

    fn lease(&self, log: &LogKey, holder: &str, ttl_ms: u64) -> Result<Answer, ReplicaError> {
        for _ in 0..TRIES {
            let (wrapped_key, holder) = match self.keys(log)? {
                Opened::Keys(keys) => (Vec::new(), keys.hide_holder(holder)),
                Opened::Gone(Answer::Absent) => {
                    let (wrapped_key, keys) = self.keyring.create(log)?;
                    (wrapped_key, keys.hide_holder(holder))
                }
                Opened::Gone(answer) => return Ok(answer),
            };
            let request = Request::Lease {
                log: log.clone(),
                holder,
                ttl_ms,
                wrapped_key: wrapped_key.clone(),
            };
            let answer = self.inner.ask(&request)?;
            let Answer::Leased {
                fence,
                log: ref status,
            } = answer
            else {
                return self.open_answer(log, answer);
            };
            if wrapped_key.is_empty() || status.wrapped_key == wrapped_key {
                return self.open_answer(log, answer);
            }
            // Others created it since, with their key, which hides holders in another way.
            let log = log.clone();
            self.inner.ask(&Request::Release { log, fence })?;
        }
        Err(away(format!(
            "others created {} at the same moment; try again",
            named(log)
        )))
    }

    fn write(&self, log: &LogKey, request: &Request) -> Result<Answer, ReplicaError> {
        let keys = match self.keys(log)? {
            Opened::Keys(keys) => keys,
            Opened::Gone(answer) => return Ok(answer),
        };
        let mut request = request.clone();
        match &mut request {
            Request::Append { after, lines, .. } => {
                keys.hide_end(after);
                for line in lines {
                    keys.hide_line(after.trail, line);
                }
            }
            Request::Begin {
                head,
                trail,
                opener,
                ..
            } => {
                head.iter_mut().for_each(|head| keys.hide_end(head));
                keys.hide_line(*trail, opener);
            }
            _ => {}
        }
        self.open_answer(log, self.inner.ask(&request)?)
    }

    fn read(
        &self,
        log: &LogKey,
        trail: u32,
        order: Order,
        request: &Request,
    ) -> Result<Answer, ReplicaError> {
        let answer = self.inner.ask(request)?;
        let Answer::Lines { mut lines, more } = answer else {
            return self.open_answer(log, answer);
        };
        match self.keys(log)? {
            Opened::Keys(keys) => {
                keys.open_lines(trail, order, &mut lines)?;
                Ok(Answer::Lines { lines, more })
            }
            Opened::Gone(answer) => Ok(answer),
        }
    }

    fn list(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let answer = self.inner.ask(request)?;
        let Answer::Logs(mut logs) = answer else {
            return Ok(answer);
        };
        for (log, status) in &mut logs {
            match self.keyring.open(log, &status.wrapped_key) {
                Ok(keys) => keys.open_status(status),
                Err(_) => answers::leave_hidden(status),
            }
        }
        Ok(Answer::Logs(logs))
    }

    fn changes(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let answer = self.inner.ask(request)?;
        let Answer::Changes(mut changes) = answer else {
            return Ok(answer);
        };
        for change in &mut changes {
            match self.keys_to_list(&change.log)? {
                Some(keys) => {
                    keys.open_end(&mut change.end);
                    change.by = answers::holder(&keys, &change.by);
                }
                None => answers::UNKNOWN.clone_into(&mut change.by),
            }
        }
        Ok(Answer::Changes(changes))
    }

    fn locate(&self, log: &LogKey, ids: &[[u8; 32]]) -> Result<Answer, ReplicaError> {
        let Opened::Keys(keys) = self.keys(log)? else {
            return Ok(Answer::Objects(Vec::new()));
        };
        let plain: HashMap<_, _> = ids.iter().map(|id| (keys.hide_object(id), *id)).collect();
        let request = Request::Locate {
            log: log.clone(),
            ids: ids.iter().map(|id| keys.hide_object(id)).collect(),
        };
        let answer = self.inner.ask(&request)?;
        let Answer::Objects(mut objects) = answer else {
            return self.open_answer(log, answer);
        };
        for object in &mut objects {
            object.id = *plain
                .get(&object.id)
                .ok_or_else(|| answers::unasked_object(log))?;
        }
        Ok(Answer::Objects(objects))
    }

    fn seal_pack(&self, log: &LogKey, objects: &[ObjectPlace]) -> Result<Answer, ReplicaError> {
        let keys = match self.keys(log)? {
            Opened::Keys(keys) => keys,
            Opened::Gone(answer) => return Ok(answer),
        };
        let hidden = |object: &ObjectPlace| ObjectPlace {
            id: keys.hide_object(&object.id),
            ..*object
        };
        self.inner.ask(&Request::SealPack {
            log: log.clone(),
            objects: objects.iter().map(hidden).collect(),
        })
    }
}
