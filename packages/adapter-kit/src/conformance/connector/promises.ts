import { fullAttention, type LayerGroupId } from '@bufferwise/core-policy';
import { ensure, ensureCode, ensureEqual, settled } from '../assertions.ts';
import type { ConformancePromise } from '../suite.ts';
import type { KvConnectorHarness } from './harness.ts';
import { type ConnectorStage, onStage, stageLayout, TOKENS_PER_BLOCK, textOf } from './stage.ts';

type ConnectorPromise = ConformancePromise<KvConnectorHarness>;
type Story = Parameters<typeof onStage>[1];

const promise = (name: string, story: Story, more: Partial<ConnectorPromise> = {}): ConnectorPromise => ({
  ...more,
  name,
  run: (harness) => onStage(harness, story),
});

/** Steps that end at the ends of blocks, so that recurrent state is kept at each. */
const blockEnds = (length: number) =>
  Array.from({ length: Math.floor(length / TOKENS_PER_BLOCK) }, (_, i) => (i + 1) * TOKENS_PER_BLOCK);
const required = ({ layout }: ConnectorStage) =>
  layout.groups.flatMap(({ groupId, lifecycle }) => (lifecycle.policy === 'required' ? [groupId] : []));

export const roundTrip = promise('loads what was saved, into the slots of whoever asks', async (stage, other) => {
  const tokens = textOf(1, 22);
  await stage.save(stage.request(tokens), blockEnds(22));
  for (const reader of [stage, await other()]) {
    // All tokens but the last may come from outside; whole blocks do.
    const request = reader.request([...tokens, 7]);
    reader.connector.scheduler.onNewRequest(request);
    const { groups } = await reader.known(request);
    reader.connector.scheduler.requestFinished(request.id, request.blocks);
    ensure(
      required(reader).every((id) => groups.includes(id)),
      `only the groups ${groups.join(', ')} are offered, and a required one is not among them`,
    );
    const again = reader.request([...tokens, 7]);
    ensureEqual(await reader.load(again), 20, 'tokens that can be loaded of 22 saved ones');
    ensureEqual(reader.failed, [], 'failed pages');
    ensureEqual(reader.differences(again, 0, 20, groups), [], 'pages with other bytes than were saved');
    await reader.finish(again);
  }
});

export const lookups = promise('answers a lookup as often as it is asked, and promises nothing by it', async (stage) => {
  const tokens = textOf(1, 16);
  await stage.save(stage.request(tokens), blockEnds(16));
  const request = stage.request(tokens);
  stage.connector.scheduler.onNewRequest(request);
  const first = await stage.known(request);
  ensureEqual(first.tokens, 12, 'tokens of a prompt of 16 saved ones, of which the last is always computed');
  for (let i = 0; i < 5; i++) ensureEqual(stage.connector.scheduler.lookup(request.id, 0), first, 'the same lookup again');
  ensureEqual((await stage.known(request, 8)).tokens, 4, 'tokens beyond the 8 that are there');
  ensureEqual(
    await stage.known(request, 12),
    { state: 'known', tokens: 0, async: false, groups: [] },
    'a lookup beyond all that is there',
  );
  const report = await stage.step();
  ensureEqual(report, { finished: { saved: [], loaded: [] }, failedPages: [] }, 'a step after lookups only');
  ensureEqual(stage.memory.written, [], 'pages written after lookups only');
  await stage.finish(request);
});

export const beyondLocal = promise('loads only what is not there yet', async (stage, other) => {
  const tokens = textOf(1, 24);
  await stage.save(stage.request(tokens), blockEnds(24));
  const reader = await other();
  const request = reader.request([...tokens, 1]);
  ensureEqual(await reader.load(request, 12), 12, 'tokens beyond 12');
  ensureEqual(reader.differences(request, 12, 12, required(reader)), [], 'pages with other bytes than were saved');
  const own = new Set(reader.memory.written);
  for (const block of [0, 1, 2])
    ensure(!own.has(`0 ${request.blocks[0]?.[block]}`), `block ${block} was loaded although it is there`);
  await reader.finish(request);
});

export const isolates = promise('finds nothing of another scope, model or text', async (stage, other) => {
  const tokens = textOf(1, 16);
  await stage.save(stage.request(tokens, { salt: 7 }), blockEnds(16));
  const tries: [string, ConnectorStage, readonly number[], object | undefined][] = [
    ['no scope', stage, tokens, undefined],
    ['another salt', stage, tokens, { salt: 8 }],
    ['an adapter of the same number', stage, tokens, { loraId: 7 }],
    ['an adapter besides', stage, tokens, { salt: 7, loraId: 1 }],
    ['another first token', stage, [5, ...tokens.slice(1)], { salt: 7 }],
    ['another model', await other('model b'), tokens, { salt: 7 }],
  ];
  for (const [what, reader, text, scope] of tries) {
    const request = reader.request([...text, 1], scope);
    reader.connector.scheduler.onNewRequest(request);
    ensureEqual((await reader.known(request)).tokens, 0, `tokens found with ${what}`);
    await reader.finish(request);
  }
});

export const refusesPrivate: ConnectorPromise = {
  name: 'refuses private groups',
  async run(harness) {
    const connector = await harness.create();
    try {
      const layout = stageLayout(connector);
      const lifecycle = fullAttention({ policy: 'private' });
      const groups = [
        ...layout.groups,
        { groupId: layout.groups.length as LayerGroupId, lifecycle, layerIds: [0], pageBytes: 8 },
      ];
      const memory = { readPages: async () => [], writePages: () => {} };
      await ensureCode(() => connector.register({ ...layout, groups }, memory), 'private-group', 'register with a private group');
    } finally {
      await (harness.destroy ? harness.destroy(connector) : connector.close());
    }
  },
};

export const holes = promise('leaves holes alone, when it saves and when it loads', async (stage) => {
  const tokens = textOf(1, 24);
  const donor = stage.request(tokens);
  // The window has moved on: only the last blocks have pages.
  donor.blocks = donor.blocks.map((slots, id) => (id === 1 ? slots?.map((slot, block) => (block < 4 ? -1 : slot)) : slots));
  await stage.save(donor, [24]);
  const own = donor.blocks.flatMap((slots, id) => (slots ?? []).map((slot) => `${id} ${slot}`));
  for (const page of stage.memory.read)
    ensure(own.includes(page), `page ${page} (group, slot) was read, which its request does not hold`);
  const reader = stage.request([...tokens, 1]);
  reader.blocks = reader.blocks.map((slots, id) => (id === 1 ? slots?.map((slot, block) => (block < 4 ? -1 : slot)) : slots));
  ensureEqual(await stage.load(reader), 24, 'tokens that can be loaded when the window has what it needs');
  ensureEqual(stage.differences(reader, 0, 24, required(stage)), [], 'pages with other bytes than were saved');
  await stage.finish(reader);
});

export const failures: ConnectorPromise = {
  name: 'reports pages that could not be loaded, each of them, and offers them no more',
  needs: 'spoil',
  run: (harness) =>
    onStage(harness, async (stage) => {
      const tokens = textOf(1, 16);
      await stage.save(stage.request(tokens), blockEnds(16));
      const request = stage.request([...tokens, 1]);
      const { scheduler } = stage.connector;
      scheduler.onNewRequest(request);
      const { tokens: found, async } = await stage.known(request);
      ensureEqual(found, 16, 'tokens found before the store was spoilt');
      await harness.spoil?.(stage.connector);
      scheduler.allocated(request.id, request.blocks, 0, found);
      const until = Date.now() + stage.patienceMs;
      await stage.step();
      while (async && !stage.loaded.includes(request.id) && Date.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        await stage.step();
      }
      ensure(!async || stage.loaded.includes(request.id), 'a request whose load failed was not reported as loaded');
      const failed = stage.failed.map(({ groupId, slot }) => `${groupId} ${slot}`);
      const expected = (request.blocks[0] ?? []).slice(0, 4).map((slot) => `0 ${slot}`);
      ensure(
        expected.every((page) => failed.includes(page)),
        `failed pages: expected ${expected.join(', ')} among ${failed.join(', ')}`,
      );
      ensure(new Set(failed).size === failed.length, 'a failed page was reported twice');
      ensureEqual(stage.memory.written, [], 'pages written by a load that failed');
      ensureEqual((await stage.known(request)).tokens, 0, 'tokens found after all pages failed');
      await stage.finish(request);
    }),
};

export const forgetsOrders = promise('orders nothing twice', async (stage) => {
  const request = stage.request(textOf(1, 8));
  const { scheduler } = stage.connector;
  scheduler.onNewRequest(request);
  scheduler.willWrite(request.id, request.blocks, 8);
  await stage.step({ write: () => stage.compute(request, 0, 8) });
  const reads = stage.memory.read.length;
  ensure(reads > 0, 'no page was read for a save');
  scheduler.willWrite(request.id, request.blocks, 8);
  await stage.step();
  await stage.step();
  // State is one page: it may be read again where it is.
  const again = stage.memory.read.slice(reads).filter((page) => !page.startsWith('3 '));
  ensureEqual(again, [], 'pages read again that had been saved');
  await stage.finish(request);
});

export const savesInTime = promise('has read what it saves when waitForSave settles', async (stage, other) => {
  const tokens = textOf(1, 12);
  const donor = stage.request(tokens);
  const { scheduler } = stage.connector;
  scheduler.onNewRequest(donor);
  scheduler.willWrite(donor.id, donor.blocks, 12);
  await stage.step({ write: () => stage.compute(donor, 0, 12) });
  // Whoever comes next writes into the same slots, at once.
  for (const page of stage.memory.pages.values()) page.fill(0x55);
  await stage.finish(donor);
  await ensureOwnBytes(await other(), tokens);
});

export const preempts = promise(
  'saves the bytes of a preempted request or none, never those of the next owner',
  async (stage, other) => {
    const tokens = textOf(1, 12);
    const donor = stage.request(tokens);
    const { scheduler, worker } = stage.connector;
    scheduler.onNewRequest(donor);
    stage.compute(donor, 0, 12);
    scheduler.willWrite(donor.id, donor.blocks, 12);
    worker.beginStep(structuredClone(scheduler.buildStep()));
    await settled(worker.preempted([donor.id]), stage.patienceMs, 'preempted');
    for (const page of stage.memory.pages.values()) page.fill(0x55);
    worker.startLoad();
    for (const layerId of new Set(stage.layout.groups.flatMap(({ layerIds }) => layerIds))) worker.saveLayer(layerId);
    await settled(worker.waitForSave(), stage.patienceMs, 'waitForSave');
    scheduler.update({ finished: worker.finished([]), failedPages: worker.failedPages() });
    worker.endStep();
    await stage.finish(donor);
    await ensureOwnBytes(await other(), tokens);
  },
);

export const givesBack = promise('gives back the pages of every finished request, once', async (stage) => {
  const requests = [1, 2, 3].map((id) => stage.request(textOf(id, 12)));
  const { scheduler } = stage.connector;
  for (const request of requests) {
    scheduler.onNewRequest(request);
    scheduler.willWrite(request.id, request.blocks, 12);
  }
  await stage.step({
    write: () => {
      for (const request of requests) stage.compute(request, 0, 12);
    },
  });
  const delayed = requests
    .filter((request) => scheduler.requestFinished(request.id, request.blocks).delayFree)
    .map(({ id }) => id);
  await stage.step({ announced: requests.map(({ id }) => id) });
  const until = Date.now() + stage.patienceMs;
  while (!delayed.every((id) => stage.saved.includes(id)) && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await stage.step();
  }
  const once = delayed.every((id) => stage.saved.filter((saved) => saved === id).length === 1);
  ensure(once, `requests ${delayed.join(', ')} wait for their saves, and told as saved were ${stage.saved.join(', ')}`);
  await ensureCode(
    () => scheduler.requestFinished(requests[0].id, requests[0].blocks),
    'unknown-request',
    'requestFinished the second time',
  );
});

export const snapshots = promise(
  'offers only what ends where recurrent state was kept',
  async (stage) => {
    const tokens = textOf(1, 24);
    // 14 is inside of a block: attention has 12 tokens and more, state none behind 8.
    await stage.save(stage.request(tokens.slice(0, 14)), [8, 14]);
    const request = stage.request(tokens);
    ensureEqual(await stage.load(request), 8, 'tokens that can be loaded');
    ensureEqual(stage.differences(request, 0, 8, required(stage)), [], 'pages with other bytes than were saved');
    await stage.finish(request);
  },
  { flag: 'snapshots' },
);

export const events = promise(
  'tells of each block once, group by group',
  async (stage) => {
    for (const _ of [1, 2]) await stage.save(stage.request(textOf(1, 8)), blockEnds(8));
    const told = stage.connector.takeEvents();
    const perGroup = new Map<number, string[]>();
    for (const { type, groupId, keys } of told) {
      ensureEqual(type, 'stored', 'type of an event after saves only');
      perGroup.set(groupId, [...(perGroup.get(groupId) ?? []), ...keys.map((key) => key.join())]);
    }
    for (const { groupId } of stage.layout.groups) {
      const keys = perGroup.get(groupId) ?? [];
      ensure(
        keys.length === 2 && new Set(keys).size === 2,
        `group ${groupId}: ${keys.length} blocks were told, expected 2 that differ`,
      );
    }
    ensureEqual(stage.connector.takeEvents(), [], 'events taken again');
  },
  { flag: 'events' },
);

export const resets = promise('has nothing of the model after resetCache, for nobody', async (stage, other) => {
  await stage.save(stage.request(textOf(1, 12)), blockEnds(12));
  const wasReset = await settled(stage.connector.resetCache(), stage.patienceMs, 'resetCache');
  if (!wasReset) return;
  for (const reader of [stage, await other()]) {
    const request = reader.request(textOf(1, 12));
    ensureEqual(await reader.load(request), 0, 'tokens found after resetCache');
    await reader.finish(request);
  }
});

export const unknown = promise('knows no request that it was not told of', async (stage) => {
  await ensureCode(() => stage.connector.scheduler.lookup(99, 0), 'unknown-request', 'lookup');
  await ensureCode(() => stage.connector.scheduler.requestFinished(99, []), 'unknown-request', 'requestFinished');
});

/** Whatever a reader finds of a text has the bytes that its donor wrote. */
async function ensureOwnBytes(reader: ConnectorStage, tokens: readonly number[]): Promise<void> {
  const request = reader.request([...tokens, 1]);
  const found = await reader.load(request);
  ensureEqual(
    reader.differences(request, 0, found, found === 0 ? [] : required(reader)),
    [],
    'pages with the bytes of another owner',
  );
  await reader.finish(request);
}
