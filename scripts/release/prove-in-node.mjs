import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../run/workspace.mjs';
import { differences, said } from './said.mjs';

const COMMAND = join('node_modules', 'bufferwise', 'dist', 'bufferwise.js');

/** The README's first example, with a line that prints what its comments promise. */
function readmeExample() {
  const [, code] = /## A cache in twenty lines\n+```ts\n(.*?)```/s.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  if (code === undefined) throw new Error('README.md has no "A cache in twenty lines" with an example in TypeScript.');
  return `${code}\nconsole.log(JSON.stringify({ reused: second.numCommittedTokens, groups: second.reuseStatus.length }));\n`;
}

/** What Node's projects say, in ES modules and in CommonJS; an author's suite; the installed command. Problems, one sentence each. */
export async function proveInNode(consumer) {
  writeFileSync(consumer.path('readme.mjs'), readmeExample());
  return [
    ...differences('the example of README.md', await said(consumer.node(['readme.mjs'])), { reused: 100, groups: 3 }),
    ...differences('a project in ES modules', await said(consumer.node(['esm.mjs'])), {
      policies: ['required', 'optional', 'private'],
      layers: 2,
      offset: 0,
      stored: 'stored',
      found: [1, 2, 3, 4],
      missing: null,
      sealedIsLonger: true,
    }),
    ...differences('a project in CommonJS', await said(consumer.node(['required.cjs'])), {
      reused: 8,
      code: 'config-no-tiers',
      isOne: true,
      memory: 'function',
    }),
    ...(await proveConformance(consumer)),
    ...(await proveCommand(consumer)),
  ];
}

async function proveConformance(consumer) {
  consumer.add('vitest', '.');
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--root', '.', '--reporter=json'];
  const report = await said(consumer.node(args));
  if (report?.testResults === undefined) return [`the suite of page stores did not run:\n${report}`];
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.filter(({ status }) => status === 'failed');
  return [
    ...failed.map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages[0]}`),
    ...(report.numPassedTests > 10 ? [] : [`only ${report.numPassedTests} promises of page stores were looked at`]),
  ];
}

async function proveCommand(consumer) {
  const problems = [];
  const expect = (...expected) => problems.push(...unlike(...expected));
  const plan = await consumer.npx(['bufferwise', 'plan', 'gemma-3-4b', '--variant', 'split']);
  expect('npx bufferwise plan', plan, 0, /34 layers, 68 buffers, 2 groups/);
  const bare = await consumer.node([COMMAND, 'doctor', '--json']);
  expect('doctor without webgpu', bare, 1, /no-webgpu.*npm install webgpu, with --global/s);

  consumer.add('webgpu', 'apps/cli');
  consumer.add('@sparticuz/chromium', 'apps/cli');
  writeFileSync(consumer.path('prompts.jsonl'), '{"text": "Call me Ishmael."}\n{"text": "Call me Ishmael. Some"}\n');
  const answers = ['generate', '--prompts', 'prompts.jsonl', '--max-new-tokens', '2', '--json'];
  expect('generate with the demo model', await consumer.node([COMMAND, ...answers]), 0, /"reusedTokens":[1-9]/);
  return problems;
}

/** What the installed command says when its demo model is gone. Takes it away for a while: nobody else may be at work on the project. */
export async function proveWithoutModel(consumer) {
  const model = consumer.installed('bufferwise/dist/whaler-1m');
  renameSync(model, `${model}-away`);
  const without = await consumer.node([COMMAND, 'demo']);
  renameSync(`${model}-away`, model);
  return unlike('demo without its model', without, 1, /The demo model is not beside the command: install bufferwise again/);
}

function unlike(what, { code, output }, wanted, pattern) {
  if (code === wanted && pattern.test(output)) return [];
  return [`${what} ended with ${code} instead of ${wanted}, or did not say ${pattern}:\n${output.slice(-2000)}`];
}
