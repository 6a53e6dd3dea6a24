//! The key-value store: the requirement `kv`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base64;
use crate::context::{parked_json, Context};
use crate::error::{ErrorCode, HostError};
use crate::host::{check, parked, parked_body, parked_text, raw, text_of};
use crate::json::Json;

/// What became of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvUpdate {
    Written,
    /// The value that stood in its way; None when the key is absent.
    Refused(Option<Vec<u8>>),
}

impl KvUpdate {
    pub fn is_written(&self) -> bool {
        *self == KvUpdate::Written
    }
}

/// Keys in order, and the key to go on after; None at the end.
#[derive(Clone, Debug)]
pub struct KvPage {
    pub keys: Vec<String>,
    pub next: Option<String>,
}

/// Whole seconds, rounded up: 0 means no end.
fn seconds(ttl: Duration) -> i32 {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

fn found<T>(result: Result<T, HostError>) -> Result<Option<T>, HostError> {
    match result {
        Err(e) if e.code == ErrorCode::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn update(key: &str, mode: i32, expected: &[u8], value: &[u8], ttl: Duration) -> Result<KvUpdate, HostError> {
    let written = check(unsafe {
        raw::kv_update(
            key.as_ptr(),
            key.len(),
            mode,
            expected.as_ptr(),
            expected.len(),
            value.as_ptr(),
            value.len(),
            seconds(ttl),
        )
    })?;
    if written == 1 {
        return Ok(KvUpdate::Written);
    }
    // One byte says whether there is a value: an empty one is not an absent one.
    let there = parked(1)? == [1];
    Ok(KvUpdate::Refused(there.then(parked_body)))
}

impl Context {
    /// The value of a key as text; None when it is absent.
    pub fn kv_get(&self, key: &str) -> Result<Option<String>, HostError> {
        self.kv_get_bytes(key)?.map(text_of).transpose()
    }

    /// The value of a key; None when it is absent.
    pub fn kv_get_bytes(&self, key: &str) -> Result<Option<Vec<u8>>, HostError> {
        found(parked(unsafe { raw::kv_get(key.as_ptr(), key.len()) }))
    }

    /// The values of at most 100 keys; absent ones are left out.
    pub fn kv_get_many(&self, keys: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, HostError> {
        let list = Json::from(keys).to_string();
        let answer = parked_json(unsafe { raw::kv_get_many(list.as_ptr(), list.len()) })?;
        answer
            .members()
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?)))
            .map(|(key, value)| match base64::decode(value) {
                Some(bytes) => Ok((key, bytes)),
                None => Err(HostError::unexpected("a value that is not base64")),
            })
            .collect()
    }

    /// Writes a value.
    pub fn kv_set(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), HostError> {
        self.kv_set_with_ttl(key, value, Duration::ZERO)
    }

    /// Writes a value that is gone after a time, in seconds, rounded up.
    pub fn kv_set_with_ttl(&self, key: &str, value: impl AsRef<[u8]>, ttl: Duration) -> Result<(), HostError> {
        let value = value.as_ref();
        check(unsafe { raw::kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), seconds(ttl)) })?;
        Ok(())
    }

    /// Writes only if the key is absent: to claim something that only one caller may have. A `ttl` of zero means no end.
    pub fn kv_set_if_absent(&self, key: &str, value: impl AsRef<[u8]>, ttl: Duration) -> Result<KvUpdate, HostError> {
        update(key, 0, &[], value.as_ref(), ttl)
    }

    /// Writes only if the value is `expected`: to change what was read before. A `ttl` of zero means no end.
    pub fn kv_compare_and_set(
        &self,
        key: &str,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<KvUpdate, HostError> {
        update(key, 1, expected.as_ref(), value.as_ref(), ttl)
    }

    /// Adds to a whole number, an absent one counts as 0, and gives the sum. A `ttl` of zero leaves the end as it is.
    pub fn kv_increment(&self, key: &str, delta: i64, ttl: Duration) -> Result<i64, HostError> {
        let sum = parked_text(unsafe { raw::kv_increment(key.as_ptr(), key.len(), delta, seconds(ttl)) })?;
        sum.parse().map_err(HostError::unexpected)
    }

    /// Removes a key and says whether it was there.
    pub fn kv_delete(&self, key: &str) -> Result<bool, HostError> {
        Ok(check(unsafe { raw::kv_delete(key.as_ptr(), key.len()) })? == 1)
    }

    /// Lists keys that begin with `prefix`, behind the key `after`; at most `limit` (0: 1000).
    pub fn kv_list(&self, prefix: &str, after: &str, limit: u16) -> Result<KvPage, HostError> {
        let page = parked_json(unsafe {
            raw::kv_list(prefix.as_ptr(), prefix.len(), after.as_ptr(), after.len(), limit.into())
        })?;
        let keys = page["keys"].items().iter().filter_map(|key| key.as_str().map(str::to_owned)).collect();
        Ok(KvPage { keys, next: page["next"].as_str().map(str::to_owned) })
    }
}
