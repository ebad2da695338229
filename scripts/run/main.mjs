import { bench } from './bench.mjs';
import { build } from './build.mjs';
import { check } from './check.mjs';
import { demo } from './demo.mjs';
import { disaggregation } from './disaggregation.mjs';
import { docs } from './docs.mjs';
import { example } from './example.mjs';
import { playground } from './playground.mjs';
import { CommandError, stopChildrenOnSignals, wasInterrupted } from './process.mjs';
import { release } from './release.mjs';
import { failure, say } from './terminal.mjs';
import { test } from './test.mjs';

const commands = { demo, disaggregation, playground, example, test, bench, check, docs, build, release };

const usage = `Usage: node scripts/run.mjs <command>

  demo  [arguments]            the demo model on WebGPU, with and without a reused prefix
  disaggregation               one process reads prompts, another answers, over NATS and TCP
  playground [--port N]        the playground, built and served to this machine
  example <name>               a program of examples/
  test  [suite] [arguments]    suites: unit, gpu, browser, page, services; all of them without a name
  bench [name] [flags]         benchmarks whose path contains the name, all without one; --json, --out FILE, --compare FILE
  check [name]                 style, types, imports, packages, sizes, docs, errors, changeset; all of them without a name
  docs  [build] [--port N]     the documentation, built and served to this machine; with "build" only built
  build                        every package into its dist folder
  release [--dry-run]          publishes what is packed and proven; with --dry-run the next release up to there, and nothing is published
`;

/**
 * @param {string[]} args what stands behind `run.mjs`
 * @returns {Promise<number>} the exit code
 */
export async function main(args) {
  const [name, ...rest] = args;
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    say(usage);
    return name === undefined ? 1 : 0;
  }
  if (!Object.hasOwn(commands, name)) {
    say(`${failure(`There is no command "${name}".`)}\n\n${usage}`);
    return 1;
  }
  stopChildrenOnSignals();
  try {
    const code = await commands[name](rest[0] === '--' ? rest.slice(1) : rest);
    return wasInterrupted() ? 130 : code;
  } catch (error) {
    if (wasInterrupted()) return 130;
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`\n${failure(error.message)}\n`);
    return error.exitCode;
  }
}
