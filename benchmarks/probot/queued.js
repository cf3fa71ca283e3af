// A probot whose one handler stores each delivery in a queue before the webhook is answered. `python -m
// benchmarks.durable` starts it with a queue and its address. It prints its port, and ends with its standard input.
import { createServer } from "node:http";
import { createNodeMiddleware, createProbot } from "probot";

const NAME = "deliveries";

const openers = {
  "pg-boss": async (address) => {
    const { default: PgBoss } = await import("pg-boss");
    const boss = new PgBoss(address);
    await boss.start();
    await boss.createQueue(NAME);
    await boss.work(NAME, async () => {});
    return (id, delivery) => boss.send(NAME, delivery, { singletonKey: id });
  },
  "graphile-worker": async (address) => {
    const { Logger, makeWorkerUtils, run } = await import("graphile-worker");
    const quiet = { connectionString: address, logger: new Logger(() => () => {}) };
    const utils = await makeWorkerUtils(quiet);
    await utils.migrate();
    await run({ ...quiet, noHandleSignals: true, taskList: { [NAME]: async () => {} } });
    return (id, delivery) => utils.addJob(NAME, delivery, { jobKey: id });
  },
  bullmq: async (address) => {
    const { Queue, Worker } = await import("bullmq");
    const { hostname: host, port } = new URL(address);
    const connection = { host, port: Number(port), maxRetriesPerRequest: null };
    const queue = new Queue(NAME, { connection });
    new Worker(NAME, async () => {}, { connection });
    return (id, delivery) => queue.add(NAME, delivery, { jobId: `delivery-${id}` });
  },
};

const [queue, address] = process.argv.slice(2);
const store = await openers[queue](address);
const app = (probot) => {
  probot.onAny(({ id, name, payload }) => store(id, { name, payload }));
};

const middleware = await createNodeMiddleware(app, { probot: createProbot(), webhooksPath: "/webhook" });
const server = createServer((request, response) => {
  middleware(request, response, () => response.writeHead(404).end());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
