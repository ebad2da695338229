import { basename } from 'node:path';
import { TRACE_FORMATS, type TraceFormat, type TraceRequest } from '@bufferwise-internal/request-traces';
import { defineCommand } from '../command/command.ts';
import { wholeNumber } from '../input/arguments.ts';
import { writeOutput } from '../input/output-file.ts';
import { MANY, MAX_PROMPT, readTraceRequests } from '../input/trace-file.ts';
import { replayTrace } from '../replay/replay-loop.ts';
import { replayPage, replayPicture } from '../replay/replay-picture.ts';
import type { ReplayResult } from '../replay/replay-result.ts';
import { changedFlags, type ReplaySettings, readSettings, SETTING_DEFAULTS } from '../replay/replay-settings.ts';
import { percent, replayText } from '../replay/replay-text.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Replays a trace of requests on a real manager whose pages hold no bytes, and says what it could reuse. */
export const replay = defineCommand({
  name: 'replay',
  summary: 'Serve a trace of requests on a cache without bytes: hit rates, evictions, traffic between tiers',
  args: {
    trace: {
      type: 'positional',
      description: 'A trace, as published or gzipped; the format is told by its first line',
      required: true,
    },
    format: { type: 'enum', description: 'The format, when you know better', options: [...TRACE_FORMATS] },
    memory: { type: 'string', description: 'Device memory for all pages', valueHint: 'SIZE', default: SETTING_DEFAULTS.memory },
    host: {
      type: 'string',
      description: 'Host memory for pages that leave the device; is really taken',
      valueHint: 'SIZE',
      default: SETTING_DEFAULTS.host,
    },
    disk: {
      type: 'string',
      description: 'A disk behind that, which keeps no bytes either',
      valueHint: 'SIZE',
      default: SETTING_DEFAULTS.disk,
    },
    mix: {
      type: 'string',
      description: 'Layers: full, window:N, state, with + between. 1 KiB a token each, a state 512 KiB',
      valueHint: 'MIX',
      default: SETTING_DEFAULTS.mix,
    },
    model: { type: 'string', description: 'Layers of a model instead of a mix: as for plan', valueHint: 'NAME|FILE' },
    variant: {
      type: 'enum',
      description: 'With --model: policies as plan has them',
      options: ['whole', 'split'],
      default: SETTING_DEFAULTS.variant,
    },
    policies: {
      type: 'string',
      description: 'ROLE=POLICY between commas; roles of a mix are full_kv, window_kv, ssm_state',
      valueHint: 'ROLE=POLICY,…',
    },
    eviction: {
      type: 'enum',
      description: 'Which page leaves first',
      options: ['cost-aware', 'lru'],
      default: SETTING_DEFAULTS.eviction,
    },
    'tokens-per-block': {
      type: 'string',
      description: 'Tokens in a block',
      valueHint: 'N',
      default: SETTING_DEFAULTS['tokens-per-block'],
    },
    running: {
      type: 'string',
      description: 'Requests that run at a time, at most',
      valueHint: 'N',
      default: SETTING_DEFAULTS.running,
    },
    'snapshot-every': {
      type: 'string',
      description: 'Tokens between snapshots of state',
      valueHint: 'N',
      default: SETTING_DEFAULTS['snapshot-every'],
    },
    rebalance: {
      type: 'string',
      description: 'Requests between two attempts to move memory between pools; 0: never',
      valueHint: 'N',
      default: SETTING_DEFAULTS.rebalance,
    },
    compare: {
      type: 'string',
      description: 'A second setting: flags above that differ, as "eviction=lru memory=512MiB"',
      valueHint: 'CHANGES',
    },
    requests: { type: 'string', description: 'Requests to serve; else all', valueHint: 'N' },
    skip: { type: 'string', description: 'Requests to leave out at the beginning', valueHint: 'N', default: '0' },
    'max-prompt': {
      type: 'string',
      description: 'Leave longer prompts out, in tokens',
      valueHint: 'N',
      default: `${MAX_PROMPT}`,
    },
    sessions: { type: 'string', description: 'Of a trace of sessions: the first N that are long enough', valueHint: 'N' },
    turns: { type: 'string', description: 'Of such a trace: the first N requests of each session', valueHint: 'N' },
    json: { type: 'boolean', description: 'Print one JSON object', default: false },
    svg: { type: 'string', description: 'Draw hit rates over time into a file as well', valueHint: 'FILE' },
    html: { type: 'string', description: 'The same as a page with the figures', valueHint: 'FILE' },
  },
  examples: [
    { what: 'What 4 GiB reuse of a conversation trace', line: 'bufferwise replay conversation_trace.jsonl --memory 4GiB' },
    {
      what: 'Two ways to evict, beside each other, on a hybrid',
      line: 'bufferwise replay trace.jsonl.gz --mix full+state --compare "eviction=lru" --html compare.html',
    },
    {
      what: 'A window that nobody has to have',
      line: 'bufferwise replay trace.jsonl.gz --mix full+window:1024 --compare "policies=window_kv=optional"',
    },
  ],
  async run(given, terminal) {
    const settings = [await readSettings(given)];
    if (given.compare !== undefined) settings.push(await readSettings(changedFlags(given, given.compare)));
    const skip = wholeNumber('skip', given.skip, { min: 0, max: MANY });
    const count = given.requests === undefined ? MANY : wholeNumber('requests', given.requests, { min: 1, max: MANY });
    const maxPrompt = wholeNumber('max-prompt', given['max-prompt'], { min: 1, max: MANY });
    const format = given.format as TraceFormat | undefined;
    const atMost = (name: 'sessions' | 'turns') =>
      given[name] === undefined ? undefined : wholeNumber(name, given[name], { min: 1, max: MANY });
    const [sessions, turns] = [atMost('sessions'), atMost('turns')];
    const trace = await readTraceRequests(given.trace, { format, skip, count, maxPrompt, sessions, turns });
    const { requests } = trace;
    const results: ReplayResult[] = [];
    for (const each of settings) results.push(await replayWatched(requests, each, terminal));
    const name = `${basename(given.trace)}, ${requests.length} requests`;
    if (given.svg !== undefined) await writeOutput(given.svg, replayPicture(results, name));
    if (given.html !== undefined) await writeOutput(given.html, replayPage(results, name));
    terminal.print(
      given.json ? `${JSON.stringify({ trace: given.trace, format: trace.format, results })}\n` : replayText(results, terminal),
    );
    return 0;
  },
});

async function replayWatched(
  requests: readonly TraceRequest[],
  settings: ReplaySettings,
  terminal: Terminal,
): Promise<ReplayResult> {
  const bar = progressBar(terminal);
  try {
    return await replayTrace(requests, settings, {
      signal: terminal.signal,
      progress: (done, hitRate) =>
        bar.update(done, requests.length, `${done} of ${requests.length} requests, ${percent(hitRate)} reused`),
    });
  } finally {
    bar.clear();
  }
}
