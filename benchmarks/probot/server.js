// A probot with one handler that does nothing: what accepting a webhook is compared with. `python -m benchmarks.accepted`
// starts it. It prints its port, and ends with its standard input.
import { createServer } from "node:http";
import { createNodeMiddleware, createProbot } from "probot";

const app = (probot) => {
  probot.on("issue_comment.created", async () => {});
};

const middleware = await createNodeMiddleware(app, { probot: createProbot(), webhooksPath: "/webhook" });
const server = createServer((request, response) => {
  middleware(request, response, () => response.writeHead(404).end());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
