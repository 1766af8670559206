// A service as many are: Node's HTTP server as it is, which calls a slow service over a pool of connections: 20, unless
// SOCKETS says otherwise.
const http = require("http");

const agent = new http.Agent({ keepAlive: true, maxSockets: Number(process.env.SOCKETS || 20) });

function failed(response) {
  if (!response.headersSent) response.statusCode = 502;
  response.end();
}

http
  .createServer((request, response) => {
    if (request.url === "/health") return response.end("ok");
    const call = http.get(process.env.DOWNSTREAM_URL, { agent }, (answer) => answer.pipe(response));
    call.on("error", () => failed(response));
  })
  .listen(8080);
