"""The tables of Procrastinate 3.10 and ours, in SQLite.

Tables, indices and triggers say what `procrastinate/sql/schema.sql` says for PostgreSQL, by the same names; a moment is
a number of seconds since 1970. Three things differ, here and in our PostgreSQL schema alike:

- a job that no worker runs names no worker, so that removing a worker changes only its running jobs;
- listeners are also notified when a job becomes free to run because another job released their common lock;
- of a job's events only its end is stored, and indices that nothing uses are gone (`LESS_WRITTEN`).
"""

NOW = "((julianday('now') - 2440587.5) * 86400.0)"

# AUTOINCREMENT, so that no ID is used twice: jobs refer to each other by it (https://sqlite.org/autoinc.html).
TABLES = f"""
CREATE TABLE procrastinate_workers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    last_heartbeat REAL NOT NULL DEFAULT {NOW}
);
CREATE TABLE procrastinate_jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_name TEXT NOT NULL CHECK (length(queue_name) <= 128),
    task_name TEXT NOT NULL CHECK (length(task_name) <= 128),
    priority INTEGER NOT NULL DEFAULT 0,
    lock TEXT,
    queueing_lock TEXT,
    args TEXT NOT NULL DEFAULT '{{}}',
    status TEXT NOT NULL DEFAULT 'todo'
        CHECK (status IN ('todo', 'doing', 'succeeded', 'failed', 'cancelled', 'aborting', 'aborted')),
    scheduled_at REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    abort_requested INTEGER NOT NULL DEFAULT 0,
    worker_id INTEGER REFERENCES procrastinate_workers (id) ON DELETE SET NULL,
    CHECK (NOT (status = 'todo' AND abort_requested))
);
CREATE TABLE procrastinate_periodic_defers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_name TEXT NOT NULL,
    defer_timestamp INTEGER,
    job_id INTEGER REFERENCES procrastinate_jobs (id) ON DELETE SET NULL,
    periodic_id TEXT NOT NULL DEFAULT '',
    UNIQUE (task_name, periodic_id, defer_timestamp)
);
CREATE TABLE procrastinate_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    type TEXT,
    at REAL DEFAULT {NOW}
);
"""

# The columns after `priority` and `id` let a fetch pass over jobs that cannot run without reading the jobs themselves,
# whose arguments hold whole payloads.
INDICES = """
CREATE UNIQUE INDEX procrastinate_jobs_queueing_lock_idx_v1 ON procrastinate_jobs (queueing_lock) WHERE status = 'todo';
CREATE UNIQUE INDEX procrastinate_jobs_lock_idx_v1 ON procrastinate_jobs (lock) WHERE status = 'doing';
CREATE INDEX procrastinate_jobs_priority_idx_v1
    ON procrastinate_jobs (priority DESC, id, lock, scheduled_at, queue_name, status) WHERE status = 'todo';
CREATE INDEX procrastinate_jobs_lock_head ON procrastinate_jobs (lock, priority DESC, id, status) WHERE status = 'todo';
CREATE INDEX procrastinate_jobs_doing ON procrastinate_jobs (id, abort_requested) WHERE status = 'doing';
CREATE INDEX procrastinate_jobs_worker ON procrastinate_jobs (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX procrastinate_jobs_status ON procrastinate_jobs (status);
CREATE INDEX procrastinate_events_job_id_fkey_v1 ON procrastinate_events (job_id);
CREATE INDEX procrastinate_periodic_defers_job_id_fkey_v1 ON procrastinate_periodic_defers (job_id);
"""

EVENT_TRIGGERS = """
CREATE TRIGGER procrastinate_trigger_status_events_insert_v1
AFTER INSERT ON procrastinate_jobs WHEN NEW.status = 'todo'
BEGIN
    INSERT INTO procrastinate_events (job_id, type) VALUES (NEW.id, 'deferred');
END;
CREATE TRIGGER procrastinate_trigger_status_events_update_v1
AFTER UPDATE OF status ON procrastinate_jobs
WHEN (OLD.status, NEW.status) IN (
    VALUES ('todo', 'doing'), ('doing', 'todo'), ('doing', 'failed'), ('doing', 'succeeded'), ('todo', 'cancelled'),
           ('todo', 'failed'), ('todo', 'succeeded'), ('doing', 'aborted'), ('failed', 'todo'))
BEGIN
    INSERT INTO procrastinate_events (job_id, type) VALUES (NEW.id, CASE
        WHEN NEW.status = 'doing' THEN 'started'
        WHEN OLD.status = 'failed' THEN 'retried'
        WHEN NEW.status = 'todo' THEN 'deferred_for_retry'
        WHEN OLD.status = 'todo' THEN 'cancelled'
        ELSE NEW.status END);
END;
CREATE TRIGGER procrastinate_trigger_scheduled_events_insert
AFTER INSERT ON procrastinate_jobs WHEN NEW.scheduled_at IS NOT NULL AND NEW.status = 'todo'
BEGIN
    INSERT INTO procrastinate_events (job_id, type, at) VALUES (NEW.id, 'scheduled', NEW.scheduled_at);
END;
CREATE TRIGGER procrastinate_trigger_scheduled_events_update
AFTER UPDATE ON procrastinate_jobs WHEN NEW.scheduled_at IS NOT NULL AND NEW.status = 'todo'
BEGIN
    INSERT INTO procrastinate_events (job_id, type, at) VALUES (NEW.id, 'scheduled', NEW.scheduled_at);
END;
CREATE TRIGGER procrastinate_trigger_abort_requested_events_v1
AFTER UPDATE OF abort_requested ON procrastinate_jobs WHEN NEW.abort_requested
BEGIN
    INSERT INTO procrastinate_events (job_id, type) VALUES (NEW.id, 'abort_requested');
END;
"""

OURS = """
CREATE UNIQUE INDEX nightjar_once ON procrastinate_jobs (queueing_lock) WHERE substr(queueing_lock, 1, 5) = 'once:';
CREATE INDEX nightjar_ended ON procrastinate_events (type, at)
    WHERE type IN ('succeeded', 'failed', 'cancelled', 'aborted');
CREATE INDEX nightjar_guid ON procrastinate_jobs ((args ->> 'guid')) WHERE task_name <> 'deliver';
CREATE INDEX nightjar_failed ON procrastinate_jobs (id) WHERE status = 'failed';
CREATE TABLE nightjar_notes (
    job_id INTEGER PRIMARY KEY REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    at REAL NOT NULL,
    outcome TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE nightjar_records (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
    expires_at REAL);
CREATE INDEX nightjar_records_expire ON nightjar_records (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE nightjar_writes (budget TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (budget, number)) WITHOUT ROWID;
CREATE INDEX nightjar_writes_at ON nightjar_writes (budget, at);
CREATE TABLE nightjar_tokens (id TEXT PRIMARY KEY, scope TEXT NOT NULL, subject TEXT NOT NULL, digest TEXT NOT NULL,
    note TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL) WITHOUT ROWID;
CREATE TABLE nightjar_schema (version INTEGER NOT NULL);
INSERT INTO nightjar_schema (version) VALUES (1);
"""

BY_LOCK = """
CREATE INDEX nightjar_deliveries ON procrastinate_jobs (lock, id) WHERE task_name = 'deliver';
"""
"""Finds the deliveries about one pull request."""

DEVICE_JOBS = """
CREATE TABLE nightjar_device_jobs (
    id TEXT PRIMARY KEY,
    repository_id INTEGER NOT NULL, repository TEXT NOT NULL, pull_request INTEGER NOT NULL, sha TEXT NOT NULL,
    lab TEXT NOT NULL, target TEXT NOT NULL, suites TEXT NOT NULL, tier INTEGER NOT NULL, origin TEXT NOT NULL,
    requested_by_id INTEGER NOT NULL, requested_by TEXT NOT NULL, requested_at REAL NOT NULL,
    state TEXT NOT NULL, expires_at REAL NOT NULL,
    approved_by_id INTEGER NOT NULL, approved_by TEXT NOT NULL, approved_at REAL NOT NULL,
    queued_at REAL NOT NULL, attempt INTEGER NOT NULL, slot INTEGER NOT NULL,
    lease TEXT NOT NULL, old_lease TEXT NOT NULL, lease_expires_at REAL NOT NULL,
    leased_at REAL NOT NULL, deadline REAL NOT NULL, run_id TEXT NOT NULL, arrived TEXT NOT NULL,
    log_url TEXT NOT NULL, note TEXT NOT NULL, ended_for TEXT NOT NULL, ended_at REAL NOT NULL,
    shown INTEGER NOT NULL, to_show INTEGER NOT NULL, version INTEGER NOT NULL
);
CREATE UNIQUE INDEX nightjar_device_jobs_device ON nightjar_device_jobs (lab, target, slot) WHERE slot >= 0;
CREATE UNIQUE INDEX nightjar_device_jobs_once ON nightjar_device_jobs (repository_id, pull_request, sha, lab, target)
    WHERE state IN ('waiting', 'queued', 'leased');
CREATE INDEX nightjar_device_jobs_pull ON nightjar_device_jobs (repository_id, pull_request, requested_at);
CREATE INDEX nightjar_device_jobs_commit ON nightjar_device_jobs (sha, lab, target, repository_id);
CREATE INDEX nightjar_device_jobs_open ON nightjar_device_jobs (lab, target) WHERE state IN ('queued', 'leased');
CREATE INDEX nightjar_device_jobs_served ON nightjar_device_jobs (lab, leased_at, repository_id, requested_by_id);
CREATE INDEX nightjar_device_jobs_requested
    ON nightjar_device_jobs (lab, target, repository_id, requested_at, requested_by_id);
CREATE INDEX nightjar_device_jobs_done ON nightjar_device_jobs (lab, target, ended_at) WHERE state = 'done';
CREATE INDEX nightjar_device_jobs_expire ON nightjar_device_jobs (expires_at) WHERE expires_at > 0;
CREATE INDEX nightjar_device_jobs_unshown ON nightjar_device_jobs (requested_at) WHERE shown < to_show;
CREATE INDEX nightjar_device_jobs_ended ON nightjar_device_jobs (ended_at) WHERE ended_at > 0;
"""
"""The tests that people requested from labs (`handlers/device_tests/`)."""

NOTED_USE = """
ALTER TABLE nightjar_tokens ADD COLUMN used_at REAL;
"""
"""When a token was last used."""

INBOX = """
CREATE TABLE nightjar_inbox (
    id INTEGER PRIMARY KEY,
    guid TEXT NOT NULL UNIQUE,
    event TEXT NOT NULL,
    lock TEXT,
    received_at REAL NOT NULL,
    note TEXT,
    body BLOB NOT NULL
);
CREATE INDEX nightjar_inbox_lock ON nightjar_inbox (lock, id);
CREATE INDEX nightjar_inbox_ignored ON nightjar_inbox (received_at) WHERE note IS NOT NULL;
CREATE TRIGGER nightjar_inbox_forget AFTER DELETE ON procrastinate_jobs WHEN OLD.task_name = 'deliver'
BEGIN
    DELETE FROM nightjar_inbox WHERE id = OLD.id;
END;
"""
"""Every delivery with its body (`bot/engine/jobs/inbox.py`). A delivery that has a job is deleted with the job."""

INBOX_FILLED = """
DROP INDEX nightjar_deliveries;
"""
"""Runs after the bodies were moved here from the arguments of their jobs."""

PLANNED_AT_ONCE = """
DROP TRIGGER nightjar_inbox_forget;
CREATE TRIGGER nightjar_inbox_forget AFTER DELETE ON procrastinate_jobs WHEN OLD.task_name IN ('deliver', 'handle')
BEGIN
    DELETE FROM nightjar_inbox WHERE id = OLD.id;
END;
"""
"""The job of a delivery may have become that of its plan (`bot/engine/sqlite/steps.py`)."""

DEVICE_QUEUE = """
ALTER TABLE nightjar_device_jobs ADD COLUMN pull_queued_at REAL NOT NULL DEFAULT 0;
CREATE INDEX nightjar_device_jobs_queue ON nightjar_device_jobs
    (lab, target, repository, requested_by_id, pull_queued_at, pull_request, requested_at DESC, id)
    WHERE state = 'queued';
CREATE INDEX nightjar_device_jobs_place ON nightjar_device_jobs (lab, repository_id, pull_request, queued_at)
    WHERE state = 'queued';
CREATE INDEX nightjar_device_jobs_repository ON nightjar_device_jobs (lab, repository_id, leased_at);
CREATE INDEX nightjar_device_jobs_person ON nightjar_device_jobs (lab, repository_id, requested_by_id, leased_at);
CREATE INDEX nightjar_device_jobs_targets ON nightjar_device_jobs ((repository || ' ' || lab || ' ' || target))
    WHERE expires_at > 0;
UPDATE nightjar_device_jobs SET pull_queued_at = (
    SELECT min(other.queued_at) FROM nightjar_device_jobs AS other
     WHERE other.lab = nightjar_device_jobs.lab AND other.repository_id = nightjar_device_jobs.repository_id
       AND other.pull_request = nightjar_device_jobs.pull_request AND other.state = 'queued')
 WHERE state = 'queued';
CREATE TRIGGER nightjar_device_jobs_inserted AFTER INSERT ON nightjar_device_jobs WHEN NEW.state = 'queued'
BEGIN
    UPDATE nightjar_device_jobs SET pull_queued_at = (
        SELECT min(other.queued_at) FROM nightjar_device_jobs AS other
         WHERE other.lab = NEW.lab AND other.repository_id = NEW.repository_id
           AND other.pull_request = NEW.pull_request AND other.state = 'queued')
     WHERE lab = NEW.lab AND repository_id = NEW.repository_id AND pull_request = NEW.pull_request
       AND state = 'queued' AND pull_queued_at <> (
        SELECT min(other.queued_at) FROM nightjar_device_jobs AS other
         WHERE other.lab = NEW.lab AND other.repository_id = NEW.repository_id
           AND other.pull_request = NEW.pull_request AND other.state = 'queued');
END;
CREATE TRIGGER nightjar_device_jobs_changed AFTER UPDATE OF state ON nightjar_device_jobs
WHEN OLD.state <> NEW.state AND 'queued' IN (OLD.state, NEW.state)
BEGIN
    UPDATE nightjar_device_jobs SET pull_queued_at = (
        SELECT min(other.queued_at) FROM nightjar_device_jobs AS other
         WHERE other.lab = NEW.lab AND other.repository_id = NEW.repository_id
           AND other.pull_request = NEW.pull_request AND other.state = 'queued')
     WHERE lab = NEW.lab AND repository_id = NEW.repository_id AND pull_request = NEW.pull_request
       AND state = 'queued' AND pull_queued_at <> (
        SELECT min(other.queued_at) FROM nightjar_device_jobs AS other
         WHERE other.lab = NEW.lab AND other.repository_id = NEW.repository_id
           AND other.pull_request = NEW.pull_request AND other.state = 'queued');
END;
"""
"""Finds the next job of a queue by indices (`handlers/device_tests/queue.py`).

`pull_queued_at` of a queued job is when the first of the queued jobs of its pull request and lab was queued.
"""

PARKED = """
ALTER TABLE procrastinate_jobs ADD COLUMN nightjar_parked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX nightjar_ready ON procrastinate_jobs (priority DESC, id, lock, scheduled_at, status, nightjar_parked)
    WHERE status = 'todo' AND NOT nightjar_parked;
CREATE TRIGGER nightjar_released_changed AFTER UPDATE OF status, priority ON procrastinate_jobs
WHEN OLD.lock IS NOT NULL AND NEW.status <> 'doing' AND (OLD.status <> NEW.status OR OLD.priority <> NEW.priority)
BEGIN
    UPDATE procrastinate_jobs SET nightjar_parked = 0
     WHERE nightjar_parked AND id = (SELECT id FROM procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo'
                                      ORDER BY priority DESC, id LIMIT 1);
END;
CREATE TRIGGER nightjar_released_deleted AFTER DELETE ON procrastinate_jobs
WHEN OLD.lock IS NOT NULL AND OLD.status IN ('todo', 'doing')
BEGIN
    UPDATE procrastinate_jobs SET nightjar_parked = 0
     WHERE nightjar_parked AND id = (SELECT id FROM procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo'
                                      ORDER BY priority DESC, id LIMIT 1);
END;
"""
"""A job is parked while another of its lock goes first (docs/decisions/parked-jobs.md)."""

FEW_TESTS = """
ALTER TABLE nightjar_device_jobs ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
ALTER TABLE nightjar_device_jobs ADD COLUMN few_tests TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nightjar_device_jobs ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
DROP INDEX nightjar_device_jobs_once;
CREATE UNIQUE INDEX nightjar_device_jobs_once
    ON nightjar_device_jobs (repository_id, pull_request, sha, lab, target, purpose)
    WHERE state IN ('waiting', 'queued', 'leased') AND requested_by_id <> 0;
CREATE INDEX nightjar_device_jobs_idle ON nightjar_device_jobs (lab, target, requested_at) WHERE state = 'idle';
"""
"""Jobs for a few tests. Those that the bot requested (person 0) are told apart by their IDs alone."""

LESS_WRITTEN = """
DROP TRIGGER procrastinate_trigger_status_events_insert_v1;
DROP TRIGGER procrastinate_trigger_scheduled_events_insert;
DROP TRIGGER procrastinate_trigger_scheduled_events_update;
DROP TRIGGER procrastinate_trigger_abort_requested_events_v1;
DROP TRIGGER procrastinate_trigger_status_events_update_v1;
CREATE TRIGGER procrastinate_trigger_status_events_update_v1
AFTER UPDATE OF status ON procrastinate_jobs
WHEN (OLD.status, NEW.status) IN (
    VALUES ('doing', 'failed'), ('doing', 'succeeded'), ('doing', 'aborted'), ('todo', 'cancelled'), ('todo', 'failed'),
           ('todo', 'succeeded'))
BEGIN
    INSERT INTO procrastinate_events (job_id, type)
    VALUES (NEW.id, CASE OLD.status WHEN 'todo' THEN 'cancelled' ELSE NEW.status END);
END;
DROP INDEX procrastinate_jobs_status;
"""
"""What was written for each job and never read.

Of a job's events, only its end is stored: retention asks when a job ended, and nobody asks for anything else. Jobs of
one status are found by the indices that hold no others.
"""

VERSIONS = (
    TABLES + INDICES + EVENT_TRIGGERS + OURS,
    BY_LOCK,
    DEVICE_JOBS,
    NOTED_USE,
    INBOX,
    INBOX_FILLED,
    PLANNED_AT_ONCE,
    DEVICE_QUEUE,
    PARKED,
    FEW_TESTS,
    LESS_WRITTEN,
)
"""The steps that bring the schema from each version to the next; the first makes it. A released step never changes."""

BEFORE_MOVE = VERSIONS.index(INBOX_FILLED)
"""The version at which bodies are moved to the inbox."""

WAKE_TRIGGERS = """
CREATE TEMP TRIGGER wake_inserted AFTER INSERT ON main.procrastinate_jobs WHEN NEW.status = 'todo'
BEGIN
    SELECT nightjar_wake(NEW.queue_name, 'job_inserted', NEW.id);
END;
CREATE TEMP TRIGGER wake_changed AFTER UPDATE OF status ON main.procrastinate_jobs
WHEN OLD.status <> NEW.status AND NEW.status <> 'doing' AND (NEW.status = 'todo' OR EXISTS (
    SELECT 1 FROM main.procrastinate_jobs WHERE lock = NEW.lock AND status = 'todo'))
BEGIN
    SELECT nightjar_wake(NEW.queue_name, 'job_inserted', NEW.id);
END;
CREATE TEMP TRIGGER wake_deleted AFTER DELETE ON main.procrastinate_jobs
WHEN OLD.status IN ('todo', 'doing') AND EXISTS (
    SELECT 1 FROM main.procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo')
BEGIN
    SELECT nightjar_wake(OLD.queue_name, 'job_inserted', OLD.id);
END;
CREATE TEMP TRIGGER wake_to_abort AFTER UPDATE OF abort_requested ON main.procrastinate_jobs
WHEN NEW.abort_requested AND NOT OLD.abort_requested AND NEW.status = 'doing'
BEGIN
    SELECT nightjar_wake(NEW.queue_name, 'abort_job_requested', NEW.id);
END;
"""
"""Temporary triggers, for our connection only: they notify this process where PostgreSQL's triggers use NOTIFY."""
