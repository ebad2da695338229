#!/usr/bin/env node
/**
 * The one door to everything a person does here: `node scripts/run.mjs <command>`, or `npm run <command>`.
 *
 * It needs Node and npm only. What is missing is set up first (dependencies, builds, a software GPU), with a line for every
 * step; what is there already is left alone.
 */
import { nodeComplaint } from './run/node-version.mjs';

const complaint = nodeComplaint(process.versions.node);
if (complaint !== undefined) {
  process.stderr.write(`${complaint}\n`);
  process.exit(1);
}

// Only now: the rest may use what an old Node cannot even parse.
const { main } = await import('./run/main.mjs');
process.exitCode = await main(process.argv.slice(2));
