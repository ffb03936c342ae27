//! The row of a schedule. One that this version cannot read stops no other, and can be canceled and declared anew.

use ratchet_core::schedule::{History, ScheduleRecord};
use ratchet_core::schedule::{MisfirePolicy, OverlapPolicy};
use ratchet_core::{BusinessKey, ErrorKind, JobId, StoreError, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::job_row::json_of;
use crate::waist::row::Row;
use crate::waist::value::Value;

/// A schedule as its row has it: what it does and when is still text.
pub(crate) struct Stored<'r> {
    pub(crate) id: JobId,
    spec: &'r str,
    on_success: Option<&'r str>,
    on_failure: Option<&'r str>,
    schedule: &'r str,
    misfire: &'r str,
    catch_up_max: i64,
    overlap: &'r str,
    pub(crate) business_key: Option<&'r str>,
    declared: bool,
    pub(crate) next_fire: Option<Timestamp>,
    history: History,
    created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl<'r> Stored<'r> {
    pub(crate) fn of(row: &'r Row) -> Result<Self, StoreError> {
        let mut fields = row.fields();
        let id = fields.job_id("recurring_id")?;
        let spec = fields.text("spec")?;
        let (on_success, on_failure) = (fields.opt_text("on_success")?, fields.opt_text("on_failure")?);
        let schedule = fields.text("schedule")?;
        let (misfire, catch_up_max) = (fields.text("misfire_policy")?, fields.int("max_catch_up")?);
        let overlap = fields.text("overlap_policy")?;
        let business_key = fields.opt_text("business_key")?;
        let declared = fields.bool("declared")?;
        let next_fire = fields.opt_time("next_fire_time")?;
        let paused = fields.bool("paused")?;
        let (last_fire, last_job) = (fields.opt_time("last_fire_time")?, fields.opt_job_id("last_job_id")?);
        let (fired, skipped) = (fields.number("fired_count")?, fields.number("skipped_count")?);
        let history = History { paused, last_fire, last_job, fired, skipped };
        let (created_at, updated_at) = (fields.time("created_at")?, fields.time("updated_at")?);
        Ok(Self {
            id,
            spec,
            on_success,
            on_failure,
            schedule,
            misfire,
            catch_up_max,
            overlap,
            business_key,
            declared,
            next_fire,
            history,
            created_at,
            updated_at,
        })
    }

    /// The schedule, if this version can read it.
    pub(crate) fn record(&self) -> Result<ScheduleRecord, StoreError> {
        let unreadable = |what: &str| {
            let problem = format!("its {what} cannot be read; it was changed by hand or by another version");
            StoreError::new(ErrorKind::Invalid, format!("reading schedule {}", self.id), problem)
        };
        let max = u32::try_from(self.catch_up_max).unwrap_or(0);
        Ok(ScheduleRecord {
            id: self.id,
            spec: parsed(self.spec).map_err(|error| unreadable("job").with_source(error))?,
            on_success: self
                .on_success
                .map(parsed)
                .transpose()
                .map_err(|error| unreadable("callback").with_source(error))?,
            on_failure: self
                .on_failure
                .map(parsed)
                .transpose()
                .map_err(|error| unreadable("callback").with_source(error))?,
            schedule: parsed(self.schedule).map_err(|error| unreadable("schedule").with_source(error))?,
            misfire: MisfirePolicy::from_parts(self.misfire, max).ok_or_else(|| unreadable("misfire policy"))?,
            overlap: self
                .overlap
                .parse::<OverlapPolicy>()
                .map_err(|error| unreadable("overlap policy").with_source(error))?,
            business_key: self
                .business_key
                .map(BusinessKey::new)
                .transpose()
                .map_err(|error| unreadable("business key").with_source(error))?,
            declared: self.declared,
            paused: false,
            next_fire: self.next_fire,
            last_fire: None,
            last_job: None,
            fired: 0,
            skipped: 0,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
        .after(self.history))
    }

    /// The schedule, or none and a word to people if this version cannot read it.
    pub(crate) fn readable(&self) -> Option<ScheduleRecord> {
        self.record()
            .inspect_err(|error| {
                let error: &dyn std::error::Error = error;
                tracing::warn!(schedule = %self.id, error, "a schedule cannot be read and is passed over");
            })
            .ok()
    }

    /// The tags under which it is found.
    pub(crate) fn tags(&self) -> Vec<String> {
        let spec: Json = serde_json::from_str(self.spec).unwrap_or_default();
        let tags = spec.get("tags").and_then(Json::as_array).into_iter().flatten();
        tags.filter_map(Json::as_str).map(str::to_owned).collect()
    }

    /// What is kept of it in the archive: the [record](ScheduleRecord), or the columns as they are.
    pub(crate) fn snapshot(&self) -> Result<Value, StoreError> {
        if let Ok(record) = self.record() {
            return json_of(&record);
        }
        let raw = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Json::from(text));
        let History { paused, last_fire, last_job, fired, skipped } = self.history;
        json_of(&json!({
            "id": self.id,
            "spec": raw(self.spec),
            "on_success": self.on_success.map(raw),
            "on_failure": self.on_failure.map(raw),
            "schedule": raw(self.schedule),
            "misfire": self.misfire,
            "max_catch_up": self.catch_up_max,
            "overlap": self.overlap,
            "business_key": self.business_key,
            "declared": self.declared,
            "paused": paused,
            "next_fire": self.next_fire,
            "last_fire": last_fire,
            "last_job": last_job,
            "fired": fired,
            "skipped": skipped,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }))
    }
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}
