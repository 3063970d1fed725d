const fs = require("fs");
const { count } = require("counting");

fs.mkdirSync("dist", { recursive: true });
fs.writeFileSync("dist/count.txt", String(count("one two three")));
console.log("built");
