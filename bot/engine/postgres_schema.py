"""What we add to Procrastinate's schema on PostgreSQL; see `bot.engine.sqlite_schema` for its twin."""

# A worker sleeps until a notification says that there is a new job. Procrastinate notifies when a job is inserted, but
# not when a job becomes free to run because its lock was released or it returned to the queue. Without this trigger,
# successive jobs of one lock would start one polling interval apart.
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
# it ever ran: minutes of work after some months. A job that nobody runs names nobody.
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
"""Finds what came in about one pull request."""

VERSIONS = (WAKE + FORGET_WORKER + LIVE_LOCKS + OURS, BY_LOCK)
"""What brings our part of the schema from each version to the next. Released ones never change."""

LOCK_ID = 6_517_280_312
"""The advisory lock under which one of the replicas that start together makes the schema: any number of our own."""
