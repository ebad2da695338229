/**
 * Replays request traces in a closed loop on a manager whose pages hold nothing, beside what other systems measured with the same
 * loop and memory, and beside what perfect foresight would reach.
 *
 * The traces are third parties' and not part of this repository: `BUFFERWISE_TRACES` names their folder, by default
 * `../shared/data/traces` from the root. Without them there is nothing to do. `BUFFERWISE_REPLAY` limits the run to what it names, by
 * workload, kind and policy, for example `conv,full,lru`; `BUFFERWISE_REPLAY_REQUESTS` to so many requests of each workload;
 * `BUFFERWISE_REPLAY_SKIP` begins so many requests later in each trace.
 */
import { spawnSync } from 'node:child_process';
import { argv, env, execArgv, execPath } from 'node:process';
import { traceFolder } from '@bufferwise-internal/request-traces';
import { Foresight, ForesightQueue } from './foresight-policy.ts';
import { peerFigures } from './peer-figures.ts';
import { BLOCK_TOKENS, type ModelKind } from './replay-config.ts';
import { type ReplayResult, replay } from './replay-loop.ts';
import { readWorkload, WORKLOADS, type Workload, type WorkloadName } from './workloads.ts';

declare const gc: (() => void) | undefined;

interface Kind {
  name: string;
  kind: ModelKind;
  /** Part of all memory that holds recurrent state. */
  stateShare: number;
  /** Requests between two calls of `rebalance`; left out: never. */
  rebalanceEvery?: number;
}

/** Between two of that many requests a pause would hurt little. */
const REBALANCE_EVERY = 50;

/**
 * The state kinds have the same bytes: one state for every 512 tokens of attention, or half of that and more attention; and splits that
 * are wrong in either way, left alone or rebalanced.
 */
const KINDS: readonly Kind[] = [
  { name: 'full', kind: 'full', stateShare: 0 },
  { name: 'window', kind: 'window', stateShare: 0 },
  { name: 'state', kind: 'state', stateShare: 0.5 },
  { name: 'state-quarter', kind: 'state', stateShare: 0.25 },
  { name: 'state-rebalanced', kind: 'state', stateShare: 0.5, rebalanceEvery: REBALANCE_EVERY },
  { name: 'state-sixteenth', kind: 'state', stateShare: 0.0625 },
  { name: 'state-sixteenth-rebalanced', kind: 'state', stateShare: 0.0625, rebalanceEvery: REBALANCE_EVERY },
  { name: 'state-three-quarters', kind: 'state', stateShare: 0.75 },
  { name: 'state-three-quarters-rebalanced', kind: 'state', stateShare: 0.75, rebalanceEvery: REBALANCE_EVERY },
];
const POLICIES = ['lru', 'cost-aware', 'foresight'] as const;
type Policy = (typeof POLICIES)[number];

/** Set in the process that replays one workload with one policy. */
const IN_CHILD = 'BUFFERWISE_REPLAY_CHILD';

/** One line of the table. */
interface Row {
  workload: string;
  kind: string;
  who: string;
  'blocks/s': number;
  'us/token': number;
  'hit %': number;
  'peak MB': number;
}

export const columns = {
  'blocks/s': { unit: 'blocks/s', better: 'higher' },
  'us/token': { unit: 'us', better: 'lower' },
  'hit %': { unit: '%', better: 'higher' },
  'peak MB': { unit: 'MB', better: 'lower' },
} satisfies Partial<Record<keyof Row, object>>;

export default async function bench(): Promise<Row[]> {
  const folder = traceFolder();
  if (folder === undefined) {
    console.error('No traces beside the repository; set BUFFERWISE_TRACES to the folder that has them. Nothing was replayed.');
    return [];
  }
  const asked = (env.BUFFERWISE_REPLAY ?? '').split(',').filter((word) => word !== '');
  const limit = Number(env.BUFFERWISE_REPLAY_REQUESTS ?? Number.POSITIVE_INFINITY);
  const skip = Number(env.BUFFERWISE_REPLAY_SKIP ?? 0);
  if (env[IN_CHILD] !== undefined) {
    const [name, kindName, policy] = asked;
    const kind = KINDS.find((each) => each.name === kindName) as Kind;
    const workload = readWorkload(folder, name as WorkloadName, { skip, limit });
    // For the process that asked.
    console.log(JSON.stringify(row(workload, kind, policy, await replayWith(workload, kind, policy as Policy))));
    return [];
  }
  const rows: Row[] = [];
  for (const name of chosen(WORKLOADS, asked)) {
    for (const kindName of chosen(
      KINDS.map((each) => each.name),
      asked,
    )) {
      for (const policy of chosen(POLICIES, asked)) {
        if (policy !== 'foresight' || kindName === 'full') rows.push(replayInChild(folder, [name, kindName, policy]));
      }
      // Their figures are of whole workloads.
      if (limit === Number.POSITIVE_INFINITY && skip === 0)
        rows.push(...peerRows(name, KINDS.find((each) => each.name === kindName) as Kind));
    }
  }
  return rows;
}

/** One replay in a process of its own: what the compiler learned from one policy would slow the next. */
function replayInChild(folder: string, what: readonly [string, string, string]): Row {
  const child = spawnSync(execPath, [...execArgv, argv[1]], {
    env: { ...env, BUFFERWISE_TRACES: folder, BUFFERWISE_REPLAY: what.join(), BUFFERWISE_BENCH_ROWS: undefined, [IN_CHILD]: '1' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.status !== 0) throw new Error(`The replay of ${what.join(', ')} ended with ${child.status ?? child.signal}`);
  return JSON.parse(child.stdout) as Row;
}

function peerRows(workload: WorkloadName, { name, kind }: Kind): Row[] {
  return peerFigures(workload, kind).map(({ peer, blocksPerSecond, usPerToken, hitPercent, peakMb }) => ({
    workload,
    kind: name,
    who: peer,
    'blocks/s': blocksPerSecond,
    'us/token': usPerToken,
    'hit %': hitPercent,
    'peak MB': peakMb,
  }));
}

/** The names that were asked for, all when none of them was. */
function chosen<T extends string>(names: readonly T[], asked: readonly string[]): readonly T[] {
  const some = names.filter((name) => asked.includes(name));
  return some.length > 0 ? some : names;
}

async function replayWith(workload: Workload, kind: Kind, policy: Policy): Promise<ReplayResult> {
  // What is measured is a process that has been serving for a while.
  if (policy !== 'foresight')
    await replay({ workload: warmUp(workload), kind: kind.kind, stateShare: kind.stateShare, eviction: policy });
  gc?.();
  if (policy !== 'foresight') {
    const { kind: layers, stateShare, rebalanceEvery } = kind;
    return replay({ workload, kind: layers, stateShare, rebalanceEvery, eviction: policy });
  }
  const foresight = new Foresight(workload.requests);
  return replay({
    workload,
    kind: kind.kind,
    eviction: (pages) => new ForesightQueue(pages, foresight),
    admitting: (index) => {
      foresight.now = index;
    },
  });
}

function warmUp(workload: Workload): Workload {
  return { ...workload, requests: workload.requests.slice(0, 1000) };
}

function row(workload: Workload, kind: Kind, policy: string, result: ReplayResult): Row {
  const promptMs = result.openMs + result.resizeMs + result.commitMs;
  return {
    workload: workload.name,
    kind: kind.name,
    who: policy === 'foresight' ? 'foresight (a bound)' : `Bufferwise ${policy}`,
    'blocks/s': Math.round(result.promptTokens / BLOCK_TOKENS / (promptMs / 1000)),
    'us/token': Number(((result.decodeMs * 1000) / result.outputTokens).toFixed(3)),
    'hit %': Number(((100 * result.hitTokens) / result.promptTokens).toFixed(2)),
    'peak MB': Math.round(result.peakBytes / 1e6),
  };
}
