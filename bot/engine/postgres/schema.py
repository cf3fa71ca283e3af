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
"""The job of a delivery may have become that of its plan (`ENDS`)."""

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

ENDS = """
CREATE FUNCTION nightjar_end_v1(
    ended_id bigint, holder bigint, new_status procrastinate_job_status, new_outcome text, new_note text,
    plan_key text, plan_args jsonb, new_jobs json, changes json, begins_next boolean, least_priority integer,
    reads text[]
) RETURNS TABLE (
    ended bigint, id bigint, status procrastinate_job_status, task_name varchar, priority integer, lock text,
    queueing_lock text, args jsonb, scheduled_at timestamptz, queue_name varchar, attempts integer, worker_id bigint,
    records json, effects json
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    held_lock text;
    change record;
    next procrastinate_jobs;
    next_records json;
    next_effects json;
BEGIN
    IF new_jobs IS NOT NULL THEN
        PERFORM FROM procrastinate_jobs AS job
          WHERE job.id = ended_id AND job.status = 'doing' AND job.worker_id = holder FOR UPDATE;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        -- Before the job ends: they go before the next delivery of its lock, which stays parked.
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
        SELECT job.queue, job.task, job.priority, job.lock, job.key, job.args, job.scheduled_at
          FROM ROWS FROM (json_to_recordset(new_jobs) AS (
                   queue text, task text, priority integer, lock text, key text, args jsonb, scheduled_at timestamptz))
               WITH ORDINALITY AS job (queue, task, priority, lock, key, args, scheduled_at, place)
         ORDER BY job.place
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE procrastinate_jobs AS job
       SET status = new_status, worker_id = NULL, abort_requested = FALSE, attempts = job.attempts + 1,
           task_name = CASE WHEN plan_key IS NULL THEN job.task_name ELSE 'handle' END,
           queueing_lock = coalesce(plan_key, job.queueing_lock), args = coalesce(plan_args, job.args)
     WHERE job.id = ended_id AND job.status = 'doing' AND job.worker_id = holder
    RETURNING job.lock INTO held_lock;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO nightjar_notes (job_id, at, outcome, text)
    VALUES (ended_id, date_part('epoch', now()), new_outcome, new_note)
    ON CONFLICT (job_id) DO UPDATE SET at = excluded.at, outcome = excluded.outcome, text = excluded.text;
    FOR change IN
        SELECT * FROM json_to_recordset(changes) AS (
            key text, value text, version integer, at double precision, expires_at double precision, was text,
            is_guarded boolean)
    LOOP
        IF change.value IS NULL THEN
            DELETE FROM nightjar_records AS record WHERE record.key = change.key;
        ELSIF NOT change.is_guarded THEN
            INSERT INTO nightjar_records (key, value, version, at, expires_at)
            VALUES (change.key, change.value, change.version, change.at, change.expires_at)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, at = excluded.at,
                expires_at = excluded.expires_at;
        ELSE
            IF change.was IS NULL THEN
                INSERT INTO nightjar_records (key, value, version, at, expires_at)
                VALUES (change.key, change.value, change.version, change.at, change.expires_at)
                ON CONFLICT (key) DO NOTHING;
            ELSE
                UPDATE nightjar_records AS record
                   SET value = change.value, version = change.version, at = change.at, expires_at = change.expires_at
                 WHERE record.key = change.key AND record.value = change.was;
            END IF;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'a record was changed meanwhile' USING ERRCODE = 'NJ002', DETAIL = change.key;
            END IF;
        END IF;
    END LOOP;
    IF begins_next THEN
        SELECT job.* INTO next
          FROM (SELECT first.id FROM procrastinate_jobs AS first WHERE first.lock = held_lock AND first.status = 'todo'
                 ORDER BY first.priority DESC, first.id LIMIT 1) AS first
          JOIN procrastinate_jobs AS job ON job.id = first.id
         WHERE job.status = 'todo' AND job.attempts = 0 AND job.scheduled_at IS NULL
           AND job.priority > least_priority
           FOR UPDATE OF job SKIP LOCKED;
        IF FOUND THEN
            UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = holder, nightjar_parked = FALSE
             WHERE job.id = next.id
            RETURNING job.* INTO next;
            SELECT json_agg(json_build_object('key', record.key, 'stored', record.value, 'version', record.version))
              INTO next_records FROM nightjar_records AS record WHERE record.key = ANY(reads);
            IF next.task_name = 'conclude' THEN
                SELECT json_agg(json_build_object('task_name', job.task_name, 'status', job.status,
                           'priority', job.priority, 'args', job.args, 'outcome', note.outcome, 'note', note.text)
                           ORDER BY job.id)
                  INTO next_effects
                  FROM procrastinate_jobs AS job LEFT JOIN nightjar_notes AS note ON note.job_id = job.id
                 WHERE job.task_name <> 'deliver' AND (job.args ->> 'guid') = (next.args ->> 'guid')
                   AND job.task_name IN ('handle', 'effect') AND job.args ->> 'handler' = next.args ->> 'handler';
            END IF;
        END IF;
    END IF;
    RETURN QUERY SELECT ended_id, next.id, next.status, next.task_name, next.priority, next.lock, next.queueing_lock,
        next.args, next.scheduled_at, next.queue_name, next.attempts, next.worker_id, next_records, next_effects;
END;
$$;
"""
"""Ends a job, stores what follows from it, and may begin the next job of its lock (`bot/engine/jobs/steps.py`).

A change in a later release gets a function of another name: replicas of this one call it still.
"""

LESS_WRITTEN = """
DROP TRIGGER procrastinate_trigger_status_events_insert_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_scheduled_events_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_abort_requested_events_v1 ON procrastinate_jobs;
DROP TRIGGER procrastinate_trigger_status_events_update_v1 ON procrastinate_jobs;
CREATE TRIGGER procrastinate_trigger_status_events_update_v1 AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (NEW.status NOT IN ('todo', 'doing', 'aborting'))
    EXECUTE FUNCTION procrastinate_trigger_function_status_events_update_v1();
DROP TRIGGER nightjar_forget_worker ON procrastinate_jobs;
CREATE TRIGGER nightjar_forget_worker BEFORE UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing' AND NEW.status <> 'doing' AND NEW.worker_id IS NOT NULL)
    EXECUTE FUNCTION nightjar_forget_worker();
DROP INDEX procrastinate_jobs_queue_name_idx_v1;
DROP INDEX procrastinate_jobs_id_lock_idx_v1;
DROP INDEX idx_procrastinate_jobs_worker_not_null;
"""
"""What was written for each job and never read.

Of a job's events, only its end is stored: retention asks when a job ended, and nobody asks for anything else. The
indices served Procrastinate's own fetch and its lists of queues, or are the same as ours.
"""

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
    ENDS + LESS_WRITTEN,
)
"""The steps that bring our part of the schema from each version to the next. A released step never changes."""

BEFORE_MOVE = VERSIONS.index(INBOX_FILLED)
"""The version at which bodies are moved to the inbox."""

LOCK_ID = 6_517_280_312
"""The advisory lock under which replicas that start together take turns to make the schema. Any number would do."""
