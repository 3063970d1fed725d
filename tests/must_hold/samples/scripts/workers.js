const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const { execFileSync } = require("node:child_process");

if (isMainThread) {
  const worker = new Worker(__filename);
  worker.once("message", (answer) => {
    console.log("worker", answer, execFileSync("echo", ["child"]).toString().trim());
    worker.terminate();
  });
  worker.postMessage(21);
} else {
  parentPort.once("message", (number) => parentPort.postMessage(number * 2));
}
