#!/usr/bin/env node
/**
 * Replays every published trace with `bufferwise replay`, with each mix of layers and policies, and prints Markdown tables: what was reused,
 * beside what other systems reuse of the same requests with the same memory, and calls of the manager a second.
 *
 * node scripts/replay-table.mjs [trace …]
 *
 * The traces are third parties' and not part of the repository: `BUFFERWISE_TRACES` names their folder, by default `../shared/data/traces`.
 */
import { join } from 'node:path';
import { run } from './run/process.mjs';
import { importSource, sourceModule } from './run/source-module.mjs';

/** As in the figures of other systems: which requests, how many at a time, and tokens that fit. A token of a mix takes 1 KiB in a layer. */
const TRACES = [
  { name: 'conv', file: 'mooncake_conversation_first70.jsonl.gz', flags: '--requests 2000 --running 64', mib: 4096 },
  { name: 'syn', file: 'mooncake_synthetic.jsonl.gz', flags: '--requests 1200 --running 64', mib: 4096 },
  { name: 'claude', file: 'claude_code_agentic_mod5.jsonl.gz', flags: '--sessions 16 --turns 24 --running 16', mib: 2048 },
  { name: 'miniswe', file: 'lmcache_agent_miniswe.jsonl.gz', flags: '--running 32', mib: 1024 },
  { name: 'magagent', file: 'lmcache_agent_magagent.jsonl.gz', flags: '--running 32', mib: 512 },
  { name: 'azure-conv', file: 'azure_llm_2023_conv.csv.gz', flags: '--requests 2000 --running 64', mib: 1024 },
  { name: 'azure-code', file: 'azure_llm_2023_code.csv.gz', flags: '--requests 2000 --running 64', mib: 1024 },
];

/** Two layers have twice the memory, as there, and may move it between their pools; `kind` is what the figures of others call it. */
const MIXES = [
  { name: 'full', flags: '--mix full', layers: 1, kind: 'full' },
  { name: 'full+window', flags: '--mix full+window:1024 --rebalance 50', layers: 2, kind: 'window' },
  { name: 'window optional', flags: '--mix full+window:1024 --policies window_kv=optional --rebalance 50', layers: 2 },
  { name: 'window private', flags: '--mix full+window:1024 --policies window_kv=private --rebalance 50', layers: 2 },
  { name: 'full+state', flags: '--mix full+state --rebalance 50', layers: 2, kind: 'state' },
  { name: 'state optional', flags: '--mix full+state --policies ssm_state=optional --rebalance 50', layers: 2 },
];

const { traceFolder } = await importSource('internal/request-traces', 'src/trace-folder.ts');
const folder = traceFolder();
if (folder === undefined) {
  console.error('No traces beside the repository; set BUFFERWISE_TRACES to the folder that has them.');
  process.exit(1);
}
const asked = process.argv.slice(2);
const command = await sourceModule('apps/cli', 'bufferwise', "import './src/main.ts';");
const { peerFigures } = await importSource('packages/cache-manager', 'bench/replay/peer-figures.ts');

const traces = TRACES.filter(({ name }) => asked.length === 0 || asked.includes(name));
const cells = new Map();
for (const trace of traces) {
  for (const mix of MIXES) {
    const flags = `${trace.flags} ${mix.flags} --memory ${trace.mib * mix.layers}MiB --json`;
    const { code, output } = await run(process.execPath, [command, 'replay', join(folder, trace.file), ...flags.split(' ')], {
      capture: true,
    });
    if (code !== 0) throw new Error(`bufferwise replay ${trace.file} ${flags}\n${output}`);
    const [result] = JSON.parse(output).results;
    cells.set(`${trace.name} ${mix.name}`, result);
    console.error(`${trace.name}, ${mix.name}: ${percent(result.hitRate)} % reused, ${percent(result.savedRate)} % spared`);
  }
}

const peersOf = (trace, { kind }) => {
  if (kind === undefined || trace.name.startsWith('azure')) return '';
  return ` (${peerFigures(trace.name, kind)
    .map(({ hitPercent }) => hitPercent.toFixed(1))
    .join(', ')})`;
};
const reused = (trace, mix) => {
  const { hitRate, savedRate, recomputedTokens, promptTokens } = cells.get(`${trace.name} ${mix.name}`);
  const again = recomputedTokens > 0.0005 * promptTokens ? ` → ${percent(savedRate)}` : '';
  return `${percent(hitRate)}${again}${peersOf(trace, mix)}`;
};
const speed = (trace, mix) =>
  `${Math.round(cells.get(`${trace.name} ${mix.name}`).operationsPerSecond / 1000).toLocaleString('en')}`;
print(reused);
print(speed);

function print(cell) {
  console.log(`| trace | ${MIXES.map(({ name }) => name).join(' | ')} |`);
  console.log(`| --- |${' --- |'.repeat(MIXES.length)}`);
  for (const trace of traces) console.log(`| ${trace.name} | ${MIXES.map((mix) => cell(trace, mix)).join(' | ')} |`);
  console.log();
}

function percent(share) {
  return (100 * share).toFixed(1);
}
