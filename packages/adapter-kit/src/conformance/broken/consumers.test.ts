import type { ConsumerAdapter, ConsumerStep, StepRequest } from '../../consumer/consumer-adapter.ts';
import type { AdapterError } from '../../errors.ts';
import type { HashConsumer, HashWork } from '../../memory/hash-consumer.ts';
import type { ConsumerHarness, ConsumerMix } from '../consumer/harness.ts';
import { hashHarness, hashMixes } from '../consumer/hash-consumer-rig.ts';
import { hasCrossing } from '../consumer/steps.ts';
import { consumerSuite } from '../consumer/suite.ts';
import type { Suite } from '../suite.ts';
import { type Broken, testSuiteCatches } from './catches-rig.ts';

/** Few mixes that show everything. */
const mixes = hashMixes.filter(({ name }) => ['all kinds, split', 'crossing layers, required'].includes(name));

type Fault = (right: HashConsumer) => Partial<ConsumerAdapter<HashWork>>;

function withFault(fault: Fault, which: readonly ConsumerMix[] = mixes): ConsumerHarness<HashWork> {
  return hashHarness((right) => {
    const all: ConsumerAdapter<HashWork> = {
      specVersion: right.specVersion,
      name: right.name,
      supports: right.supports,
      layers: right.layers,
      bind: (layout, options) => right.bind(layout, options),
      planReplay: (reuseStatus, matched) => right.planReplay(reuseStatus, matched),
      record: (step, work) => right.record(step, work),
      close: () => right.close(),
    };
    return { ...all, ...fault(right) };
  }, which);
}

/** Puts out something else for the last token of a request, under some circumstances. */
function wrongWhen(circumstances: (request: StepRequest, step: ConsumerStep, row: number) => boolean): Fault {
  return (right) => ({
    record(step, work) {
      right.record(step, work);
      step.requests.forEach((request, row) => {
        const output = work.outputs[row];
        if (circumstances(request, step, row)) output[output.length - 1] ^= 1;
      });
    },
  });
}

const endOf = ({ start, numTokens }: StepRequest) => start + numTokens;

/** Whether scratch is read by a request, in layers that are alone in their slots or not. */
function readsScratch(crossing: boolean): (request: StepRequest, step: ConsumerStep, row: number) => boolean {
  return (_, { pages }, row) => {
    const ids = pages.layout.lifecycles.bufferGrouping.flat();
    const layers = [...new Set(ids.map(({ layerId }) => layerId))];
    // The layers of the crossing mix are two, those of the other four.
    return (layers.length === 2) === crossing && ids.some(({ layerId, role }) => hasScratch(pages, layerId, role, row));
  };
}

function hasScratch(pages: ConsumerStep['pages'], layerId: number, role: string, row: number): boolean {
  try {
    return pages.scratchRange(layerId, role, row) !== null;
  } catch {
    return false;
  }
}

const broken: Broken<ConsumerHarness<HashWork>>[] = [
  {
    fault: 'claims what none of its mixes shows',
    breaks: 'is tried with everything that it claims',
    harness: withFault(
      () => ({}),
      mixes.filter((mix) => !hasCrossing(mix)),
    ),
  },
  {
    fault: 'does not look whether its buffers are there',
    breaks: 'refuses a layout that lacks a buffer of its or has it in another size, and is as before then',
    harness: withFault((right) => ({
      bind(layout, options) {
        try {
          right.bind(layout, options);
        } catch (error) {
          if ((error as AdapterError).code !== 'layout-refused') throw error;
        }
      },
    })),
  },
  {
    fault: 'binds to crossing scratch that it says it cannot read',
    breaks: 'refuses what its `supports` does not claim before there is memory, and binds to the rest',
    harness: withFault((right) => ({ supports: { ...right.supports, crossingScratch: false } })),
  },
  {
    fault: 'plans something else when it is asked again',
    breaks: 'plans nothing without a match, and the same when it is asked again',
    harness: withFault((right) => {
      const seen = new WeakSet();
      return {
        planReplay(reuseStatus, matched) {
          const plan = right.planReplay(reuseStatus, matched);
          if (!seen.has(reuseStatus)) {
            seen.add(reuseStatus);
            return plan;
          }
          return { ...plan, from: matched === 0 ? 0 : plan.from === 0 ? 1 : 0 };
        },
      };
    }),
  },
  {
    fault: 'is wrong in the thirteenth token of a piece',
    breaks: 'puts out the same whether a prompt comes whole, in pieces, or token by token',
    harness: withFault(wrongWhen(({ numTokens, start, matched }) => numTokens === 13 && start > 0 && matched === 0)),
  },
  {
    fault: 'has no use for a match of one token',
    breaks: 'puts out the same with a matched prefix as without, wherever the match ends',
    harness: withFault(wrongWhen(({ matched }) => matched === 1)),
  },
  {
    fault: 'is wrong where less is there than was published',
    breaks: 'puts out the same when pages were evicted in between',
    harness: withFault(wrongWhen((request) => request.matched > 0 && endOf(request) === 30)),
  },
  {
    fault: 'forgets where it was while it is suspended',
    breaks: 'goes on after a suspension as if there had been none',
    harness: withFault(wrongWhen((request) => request.start === 17 && endOf(request) === 26)),
  },
  {
    fault: 'mixes up the rows of three requests',
    breaks: 'puts out for a request among others what it does for it alone, in every order',
    harness: withFault((right) => ({
      record(step, work) {
        right.record(step, work);
        if (step.requests.length === 3) work.outputs[0][0] ^= work.outputs[2][0] | 1;
      },
    })),
  },
  {
    fault: 'takes a step of the same shape for the same step',
    breaks: 'keeps requests of the same shape apart when they take turns',
    harness: withFault((right) => {
      let last = '';
      return {
        record(step, work) {
          right.record(step, work);
          const [{ start, numTokens, matched }] = step.requests;
          const shape = `${start} ${numTokens}`;
          if (shape === last && matched === 0 && step.requests.length === 1 && numTokens === 1) work.outputs[0][0] ^= 1;
          last = shape;
        },
      };
    }),
  },
  {
    fault: 'scribbles beside the tokens of pages that it was lent',
    breaks: 'leaves pages alone that it was lent',
    harness: withFault((right) => ({
      record(step, work) {
        right.record(step, work);
        step.requests.forEach((request, row) => {
          const [layer] = right.layers;
          const [{ role }] = layer.buffers;
          const [index] = step.pages.row(layer.layerId, role, row);
          const { groupId, bytes, stride } = bytesOf(step, layer.layerId, role);
          if (request.matched > 0 && index >= 0 && request.reusedGroups.has(groupId)) bytes[index * stride + 8] ^= 1;
        });
      },
    })),
  },
  {
    fault: 'writes a shared partial block in place',
    breaks: 'continues inside a block that others share, without touching theirs',
    harness: withFault(wrongWhen((request) => request.matched % 4 !== 0 && request.matched > 16 && endOf(request) === 25)),
  },
  {
    fault: 'knows the last snapshot only',
    breaks: 'continues from the snapshot of each count that was kept',
    harness: withFault(wrongWhen((request) => request.matched === 27 && endOf(request) === 36)),
  },
  {
    fault: 'promises to rebuild, and does not look at the tokens',
    breaks: 'fills what was not reused from tokens given again, and others may use it then',
    along: [
      'puts out the same with a matched prefix as without, wherever the match ends',
      'puts out the same when pages were evicted in between',
      'goes on after a suspension as if there had been none',
      'continues inside a block that others share, without touching theirs',
      'continues from the snapshot of each count that was kept',
      'reads and writes scratch blocks, and leaves nothing in them that is needed later',
      'forgets drafts: a step may begin before tokens that an earlier one wrote',
    ],
    harness: withFault((right) => ({
      planReplay: (reuseStatus, matched) => ({ ...right.planReplay(reuseStatus, matched), from: matched }),
    })),
  },
  {
    fault: 'cannot read scratch',
    breaks: 'reads and writes scratch blocks, and leaves nothing in them that is needed later',
    harness: withFault(wrongWhen(readsScratch(false))),
  },
  {
    fault: 'cannot read scratch that crosses slots',
    breaks: 'reads and writes scratch blocks that begin in one slot and end in the next',
    harness: withFault(wrongWhen(readsScratch(true))),
  },
  {
    fault: 'rewinds a state without keeping what it was before',
    breaks: 'forgets drafts: a step may begin before tokens that an earlier one wrote',
    harness: withFault(
      () => ({}),
      mixes.map((mix) => ({
        ...mix,
        layers: mix.layers.map((layer) => ({ ...layer, buffers: layer.buffers.filter(({ role }) => role !== 'replay_ring') })),
      })),
    ),
  },
  {
    fault: 'reads the tables of the first beam for all',
    breaks: 'puts out for each beam what it does for its tokens alone',
    harness: withFault((right) => ({
      record(step, work) {
        right.record(step, work);
        if (step.requests.length === 2 && step.requests[0].start === step.requests[1].start) work.outputs[1].set(work.outputs[0]);
      },
    })),
  },
  {
    fault: 'goes on when it is closed',
    breaks: 'refuses to bind and to record once it is closed, and may be closed twice',
    harness: withFault(() => ({ close: () => {} })),
  },
];

function bytesOf(step: ConsumerStep, layerId: number, role: string) {
  const { layout } = step.pages;
  const { bytes } = step.poolMemory(layerId, role) as unknown as { bytes: Uint8Array };
  return { groupId: layout.bufferAttr(layerId, role).lifecycleId, bytes, stride: layout.pageStride(layerId, role) };
}

testSuiteCatches(consumerSuite as Suite<ConsumerHarness<HashWork>>, hashHarness(undefined, mixes), broken);
