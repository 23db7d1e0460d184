// Bundles the page of the explorer: src/main.js with its libraries into one file, the style into another, and the
// licences of the libraries into a third. Users need none of this: what it writes is committed.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "..", "purax", "explorer", "assets");
// The page says which sources it was made of; a test compares.
const digest = createHash("sha256");
for (const name of [...readdirSync(join(here, "src")).sort().map((each) => join("src", each)), "package.json"]) {
  digest.update(readFileSync(join(here, name)));
}
const banner = `/* purax explorer, made of sources ${digest.digest("hex").slice(0, 16)} by tools/explorer/build.mjs */`;
const shared = { bundle: true, minify: true, legalComments: "none", charset: "utf8", absWorkingDir: here };

const result = await build({
  ...shared, entryPoints: ["src/main.js"], outfile: join(assets, "explorer.js"), format: "iife", target: "es2022",
  metafile: true, banner: { js: banner },
});
await build({ ...shared, entryPoints: ["src/explorer.css"], outfile: join(assets, "explorer.css") });

// Every package that a bundled file came from, with its licence.
const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const texts = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[sc]e/i.test(each));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence`);
  const text = readFileSync(join(folder, file), "utf8").replace(/[ \t]+$/gm, "").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
writeFileSync(join(assets, "LICENSES.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
console.log(`${packages.size} packages: ${[...packages].sort().join(", ")}`);
