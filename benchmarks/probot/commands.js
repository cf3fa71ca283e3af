// A probot that stores each command in pg-boss, and answers it from there with the requests that Nightjar sends. `python
// -m benchmarks.commands` starts it with the address of PostgreSQL. It prints its port, and ends with its standard input.
import { createServer } from "node:http";
import PgBoss from "pg-boss";
import { createNodeMiddleware, createProbot, ProbotOctokit } from "probot";

const NAME = "commands";
// Of 1, 4, 8 and 20 workers with batches of 50, 25, 5 and 1, this handled the most commands a second. If one command
// of a batch fails, pg-boss tries all of them again.
const WORKERS = 4;
const BATCH = 25;
const COMMAND = /^@ci help\s*$/m;
const HELP = "| `@ci help` | Shows the commands, and who may use each of them. |\n".repeat(45);

const boss = new PgBoss(process.argv[2]);
await boss.start();
await boss.createQueue(NAME);

// This GitHub does not limit writes. With probot's own limits, it would answer a command every three seconds.
const unlimited = (options) => ({ ...options, throttle: { ...options.throttle, enabled: false } });
const Octokit = ProbotOctokit.defaults(unlimited);
const probot = createProbot({ overrides: { Octokit } });
const clients = new Map();

async function answer({ installation, owner, repo, pull, comment }) {
  if (!clients.has(installation)) clients.set(installation, probot.auth(installation));
  const { pulls, reactions, issues } = (await clients.get(installation)).rest;
  const mark = `<!-- probot:answer:${comment} -->`;
  await pulls.get({ owner, repo, pull_number: pull });
  await reactions.createForIssueComment({ owner, repo, comment_id: comment, content: "eyes" });
  const { data } = await issues.listComments({ owner, repo, issue_number: pull, per_page: 100 });
  if (!data.some(({ body }) => body.startsWith(mark))) {
    await issues.createComment({ owner, repo, issue_number: pull, body: `${mark}\n${HELP}` });
  }
  await reactions.createForIssueComment({ owner, repo, comment_id: comment, content: "+1" });
}

// pg-boss fetches each half a second, unless it is notified: of a new command, or that there may be more of them.
const workers = [];
const notify = () => workers.forEach((id) => boss.notifyWorker(id));
for (let number = 0; number < WORKERS; number++) {
  const handle = async (jobs) => {
    await Promise.all(jobs.map(({ data }) => answer(data)));
    if (jobs.length === BATCH) boss.notifyWorker(id);
  };
  const id = await boss.work(NAME, { batchSize: BATCH, pollingIntervalSeconds: 0.5 }, handle);
  workers.push(id);
}

const app = (probot) => {
  probot.on("issue_comment.created", async ({ id, payload }) => {
    if (payload.sender.type === "Bot" || !COMMAND.test(payload.comment.body)) return;
    const { name: repo, owner } = payload.repository;
    const { comment, issue, installation } = payload;
    const command = { owner: owner.login, repo, pull: issue.number, comment: comment.id, installation: installation.id };
    await boss.send(NAME, command, { singletonKey: id });
    notify();
  });
};

const middleware = await createNodeMiddleware(app, { probot, webhooksPath: "/webhook" });
const server = createServer((request, response) => {
  middleware(request, response, () => response.writeHead(404).end());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
