"""Our additions to Procrastinate's schema on PostgreSQL; `bot.engine.sqlite.schema` has the same for SQLite."""

# A worker sleeps until a notification says that there is a new job. Procrastinate notifies when a job is inserted, but
# not when a job becomes free to run because its lock was released or it returned to the queue. Without this trigger,
# successive jobs of one lock would start one polling interval apart. `ANNOUNCED` replaces it.
WAKE = """
CREATE FUNCTION nightjar_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payload text := json_build_object('type', 'job_inserted', 'job_id', OLD.id)::text;
BEGIN
    PERFORM pg_notify('procrastinate_queue_v1#' || OLD.queue_name, payload);
    PERFORM pg_notify('procrastinate_any_queue_v1', payload);
    RETURN NULL;
END;
$$;
CREATE TRIGGER nightjar_wake_changed AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status <> 'doing' AND (NEW.status = 'todo' OR NEW.lock IS NOT NULL))
    EXECUTE FUNCTION nightjar_wake();
CREATE TRIGGER nightjar_wake_deleted AFTER DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status IN ('todo', 'doing') AND OLD.lock IS NOT NULL)
    EXECUTE FUNCTION nightjar_wake();
"""

# Procrastinate leaves the last worker's id on a job that ended, and deleting a worker sets it to null on every job that
# it ever ran: minutes of work after some months. So a job that no worker runs names no worker.
FORGET_WORKER = """
CREATE FUNCTION nightjar_forget_worker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.worker_id := NULL;
    RETURN NEW;
END;
$$;
CREATE TRIGGER nightjar_forget_worker BEFORE UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing' AND NEW.status <> 'doing')
    EXECUTE FUNCTION nightjar_forget_worker();
CREATE INDEX nightjar_worker ON procrastinate_jobs (worker_id) WHERE worker_id IS NOT NULL;
"""

# Procrastinate has no index by lock that knows of waiting jobs; with a backlog of 100,000 a fetch takes half the time.
LIVE_LOCKS = """
CREATE INDEX nightjar_live_locks ON procrastinate_jobs (lock, priority DESC, id) WHERE status IN ('todo', 'doing');
"""

OURS = """
CREATE UNIQUE INDEX nightjar_once ON procrastinate_jobs (queueing_lock) WHERE substr(queueing_lock, 1, 5) = 'once:';
CREATE INDEX nightjar_ended ON procrastinate_events (type, at)
    WHERE type IN ('succeeded', 'failed', 'cancelled', 'aborted');
CREATE INDEX nightjar_guid ON procrastinate_jobs ((args ->> 'guid')) WHERE task_name <> 'deliver';
CREATE INDEX nightjar_failed ON procrastinate_jobs (id) WHERE status = 'failed';
CREATE TABLE nightjar_notes (
    job_id bigint PRIMARY KEY REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    at double precision NOT NULL,
    outcome text NOT NULL,
    text text NOT NULL
);
-- Ranges of keys are read by their index, which compares bytes for that.
CREATE TABLE nightjar_records (key text COLLATE "C" PRIMARY KEY, value text NOT NULL, version integer NOT NULL,
    at double precision NOT NULL, expires_at double precision);
CREATE INDEX nightjar_records_expire ON nightjar_records (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE nightjar_writes (budget text NOT NULL, number bigint NOT NULL, at double precision NOT NULL,
    PRIMARY KEY (budget, number));
CREATE INDEX nightjar_writes_at ON nightjar_writes (budget, at);
CREATE TABLE nightjar_tokens (id text PRIMARY KEY, scope text NOT NULL, subject text NOT NULL, digest text NOT NULL,
    note text NOT NULL, created_at double precision NOT NULL, expires_at double precision);
CREATE TABLE nightjar_schema (version integer NOT NULL);
INSERT INTO nightjar_schema (version) VALUES (1);
"""

BY_LOCK = """
CREATE INDEX nightjar_deliveries ON procrastinate_jobs (lock, id) WHERE task_name = 'deliver';
"""
"""Finds the deliveries about one pull request."""

DEVICE_JOBS = """
CREATE TABLE nightjar_device_jobs (
    id text PRIMARY KEY,
    repository_id bigint NOT NULL, repository text NOT NULL, pull_request integer NOT NULL, sha text NOT NULL,
    lab text NOT NULL, target text NOT NULL, suites text NOT NULL, tier integer NOT NULL, origin text NOT NULL,
    requested_by_id bigint NOT NULL, requested_by text NOT NULL, requested_at double precision NOT NULL,
    state text NOT NULL, expires_at double precision NOT NULL,
    approved_by_id bigint NOT NULL, approved_by text NOT NULL, approved_at double precision NOT NULL,
    queued_at double precision NOT NULL, attempt integer NOT NULL, slot integer NOT NULL,
    lease text NOT NULL, old_lease text NOT NULL, lease_expires_at double precision NOT NULL,
    leased_at double precision NOT NULL, deadline double precision NOT NULL,
    run_id text NOT NULL, arrived text NOT NULL, log_url text NOT NULL,
    note text NOT NULL, ended_for text NOT NULL, ended_at double precision NOT NULL,
    shown integer NOT NULL, to_show integer NOT NULL, version integer NOT NULL
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
ALTER TABLE nightjar_tokens ADD COLUMN used_at double precision;
"""
"""When a token was last used."""

INBOX = """
CREATE TABLE nightjar_inbox (
    id bigint PRIMARY KEY,
    guid text NOT NULL UNIQUE,
    event text NOT NULL,
    lock text,
    received_at double precision NOT NULL,
    note text,
    body bytea NOT NULL
);
CREATE INDEX nightjar_inbox_lock ON nightjar_inbox (lock, id);
CREATE INDEX nightjar_inbox_ignored ON nightjar_inbox (received_at) WHERE note IS NOT NULL;
-- They are compressed already.
ALTER TABLE nightjar_inbox ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE FUNCTION nightjar_inbox_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nightjar_inbox WHERE id = OLD.id;
    RETURN NULL;
END;
$$;
CREATE TRIGGER nightjar_inbox_forget AFTER DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.task_name = 'deliver') EXECUTE FUNCTION nightjar_inbox_forget();
"""
"""Every delivery with its body (`bot/engine/jobs/inbox.py`). A delivery that has a job is deleted with the job."""

INBOX_FILLED = """
DROP INDEX nightjar_deliveries;
"""
"""Runs after the bodies were moved here from the arguments of their jobs."""

PLANNED_AT_ONCE = """
DROP TRIGGER nightjar_inbox_forget ON procrastinate_jobs;
CREATE TRIGGER nightjar_inbox_forget AFTER DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.task_name IN ('deliver', 'handle')) EXECUTE FUNCTION nightjar_inbox_forget();
"""
"""The job of a delivery may have become that of its plan (`bot/engine/jobs/store.py`)."""

DEVICE_QUEUE = """
ALTER TABLE nightjar_device_jobs ADD COLUMN pull_queued_at double precision NOT NULL DEFAULT 0;
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
CREATE FUNCTION nightjar_place_device_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RETURN NULL;
END;
$$;
CREATE TRIGGER nightjar_device_jobs_inserted AFTER INSERT ON nightjar_device_jobs FOR EACH ROW
    WHEN (NEW.state = 'queued') EXECUTE FUNCTION nightjar_place_device_jobs();
CREATE TRIGGER nightjar_device_jobs_changed AFTER UPDATE OF state ON nightjar_device_jobs FOR EACH ROW
    WHEN (OLD.state <> NEW.state AND 'queued' IN (OLD.state, NEW.state))
    EXECUTE FUNCTION nightjar_place_device_jobs();
"""
"""Finds the next job of a queue by indices (`handlers/device_tests/queue.py`).

`pull_queued_at` of a queued job is when the first of the queued jobs of its pull request and lab was queued.
"""

ANNOUNCED = """
DROP TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1 ON procrastinate_jobs;
DROP TRIGGER nightjar_wake_changed ON procrastinate_jobs;
DROP TRIGGER nightjar_wake_deleted ON procrastinate_jobs;
DROP FUNCTION nightjar_wake();
ALTER TABLE procrastinate_jobs ADD COLUMN nightjar_parked boolean NOT NULL DEFAULT FALSE;
CREATE INDEX nightjar_ready ON procrastinate_jobs (priority DESC, id) WHERE status = 'todo' AND NOT nightjar_parked;
CREATE FUNCTION nightjar_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM inserted WHERE status = 'todo') THEN
        RAISE INFO 'jobs may run' USING ERRCODE = 'NJ001';
    END IF;
    RETURN NULL;
END;
$$;
CREATE FUNCTION nightjar_released() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first_id bigint;
    was_parked boolean;
BEGIN
    IF OLD.lock IS NOT NULL THEN
        SELECT id, nightjar_parked INTO first_id, was_parked FROM procrastinate_jobs
         WHERE lock = OLD.lock AND status = 'todo' ORDER BY priority DESC, id LIMIT 1;
        IF was_parked THEN
            UPDATE procrastinate_jobs SET nightjar_parked = FALSE WHERE id = first_id;
        END IF;
    END IF;
    IF was_parked OR (TG_OP = 'DELETE' AND first_id IS NOT NULL)
       OR (TG_OP = 'UPDATE' AND OLD.status <> NEW.status AND (NEW.status = 'todo' OR first_id IS NOT NULL)) THEN
        RAISE INFO 'jobs may run' USING ERRCODE = 'NJ001';
    END IF;
    RETURN NULL;
END;
$$;
CREATE TRIGGER nightjar_inserted AFTER INSERT ON procrastinate_jobs
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION nightjar_inserted();
CREATE TRIGGER nightjar_released_changed AFTER UPDATE OF status, priority ON procrastinate_jobs FOR EACH ROW
    WHEN (NEW.status <> 'doing' AND (NEW.status = 'todo' OR NEW.lock IS NOT NULL)
          AND (OLD.status <> NEW.status OR (OLD.priority <> NEW.priority AND NEW.lock IS NOT NULL)))
    EXECUTE FUNCTION nightjar_released();
CREATE TRIGGER nightjar_released_deleted AFTER DELETE ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status IN ('todo', 'doing') AND OLD.lock IS NOT NULL)
    EXECUTE FUNCTION nightjar_released();
"""
"""Tells the client, in a message on its own connection, that jobs may run once it has committed.

The client notifies the other processes (`bot/engine/postgres/announcer.py`): a NOTIFY in the transaction that writes
would make all commits of the server wait for each other. A job is parked while another of its lock goes first
(docs/decisions/parked-jobs.md).
"""

FEW_TESTS = """
ALTER TABLE nightjar_device_jobs ADD COLUMN purpose text NOT NULL DEFAULT '';
ALTER TABLE nightjar_device_jobs ADD COLUMN few_tests text NOT NULL DEFAULT '{}';
ALTER TABLE nightjar_device_jobs ADD COLUMN outcome text NOT NULL DEFAULT '';
DROP INDEX nightjar_device_jobs_once;
CREATE UNIQUE INDEX nightjar_device_jobs_once
    ON nightjar_device_jobs (repository_id, pull_request, sha, lab, target, purpose)
    WHERE state IN ('waiting', 'queued', 'leased') AND requested_by_id <> 0;
CREATE INDEX nightjar_device_jobs_idle ON nightjar_device_jobs (lab, target, requested_at) WHERE state = 'idle';
"""
"""Jobs for a few tests. Those that the bot requested (person 0) are told apart by their IDs alone."""

VERSIONS = (
    WAKE + FORGET_WORKER + LIVE_LOCKS + OURS,
    BY_LOCK,
    DEVICE_JOBS,
    NOTED_USE,
    INBOX,
    INBOX_FILLED,
    PLANNED_AT_ONCE,
    DEVICE_QUEUE,
    ANNOUNCED,
    FEW_TESTS,
)
"""The steps that bring our part of the schema from each version to the next. A released step never changes."""

BEFORE_MOVE = VERSIONS.index(INBOX_FILLED)
"""The version at which bodies are moved to the inbox."""

LOCK_ID = 6_517_280_312
"""The advisory lock under which replicas that start together take turns to make the schema. Any number would do."""
