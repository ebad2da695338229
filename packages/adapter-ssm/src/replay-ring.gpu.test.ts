import type { ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterEach, describe, expect, test } from 'vitest';
import type { Mamba2Layer, Mamba2Role } from './mamba2-layer.ts';
import { randomNumbers, TINY } from './mamba2-rig.ts';
import { differenceFrom, RequestRig, requireCold, type TestPart, type TestRequest, textOf } from './request-rig.ts';

const device = await requestTestDevice();

/** One token and up to 16 drafts. */
const RING = { rows: 40, maxTokens: 17 };

let rig: RequestRig;
afterEach(() => rig.close());

function twoLayers(replay: Mamba2Layer['replay'], policies?: Partial<Record<Mamba2Role, ReusePolicy>>): RequestRig {
  rig = new RequestRig(
    device,
    [0, 1].map((layerId) => ({ ...TINY, layerId, replay, policies })),
  );
  return rig;
}

/** A short step that writes no state. */
const short = (request: TestRequest, numTokens = 1, right = numTokens): TestPart => ({
  request,
  end: request.next + numTokens,
  wrongFrom: request.next + right,
  snapshot: false,
});

describe('drafts', () => {
  test('that change in number from step to step leave nothing behind, accepted or not', async () => {
    const { consumer } = twoLayers(RING);
    await consumer.warmUp();
    const request = await rig.open(textOf(1, 200));
    await rig.step([{ request, end: 30 }]);
    rig.commit(request);
    for (const [drafts, accepted] of [
      [16, 0],
      [1, 1],
      [16, 16],
      [0, 0],
      [16, 3],
      [0, 0],
      [16, 15],
      [1, 0],
      [16, 9],
      [16, 16],
    ]) {
      const begin = request.next;
      await rig.step([short(request, 1 + drafts, 1 + accepted)]);
      rig.rewind(request, begin + 1 + accepted);
      rig.commit(request, { snapshot: false });
    }
    await rig.step([{ request, end: 130 }]);
    await requireCold(rig, request, 'a request with drafts');
  });

  test.each([1, 2, 3])('of several requests at once, among prompts and snapshots, seed %i', async (seed) => {
    twoLayers(RING);
    const random = randomNumbers(seed);
    const below = (n: number) => Math.floor(((random() + 1) / 2) * n);
    const open = await Promise.all([1, 2, 3, 4].map((id) => rig.open(textOf(id, 160))));
    for (let turn = 0; turn < 12; turn++) {
      const parts: (TestPart & { right: number })[] = [];
      for (const request of open.filter(() => below(4) > 0)) {
        const { next } = request;
        // Now and then a longer piece of prompt, or a step behind which a snapshot may be taken.
        const kind = next === 0 ? 0 : below(6);
        const numTokens = kind === 0 ? 1 + below(30) : 1 + [16, 1, 0, 7][below(4)];
        if (next + numTokens > 160) continue;
        if (kind < 2) parts.push({ request, end: next + numTokens, right: next + numTokens });
        else {
          const right = next + 1 + below(numTokens);
          parts.push({ request, end: next + numTokens, wrongFrom: right, snapshot: false, right });
        }
      }
      parts.sort(() => random());
      if (parts.length === 0) continue;
      await rig.step(parts);
      for (const { request, right, snapshot } of parts) {
        rig.rewind(request, right);
        const settles = snapshot === false && below(3) === 0;
        if (settles) rig.settle(request);
        rig.commit(request, { snapshot: snapshot !== false || settles });
      }
    }
    for (const [i, request] of open.entries()) {
      await requireCold(rig, request, `request ${i}`);
      request.kv.close();
    }
    // Whatever was published is true.
    for (const [i, { tokens, next }] of open.entries()) {
      const again = await rig.open(tokens.slice(0, next));
      await rig.step([{ request: again, end: next }]);
      await requireCold(rig, again, `request ${i} again, of which ${again.matched} tokens matched`);
      again.kv.close();
    }
  });

  test('are refused a way back beyond the last step, which changes nothing', async () => {
    twoLayers(RING);
    const request = await rig.open(textOf(1, 60));
    await rig.step([{ request, end: 20 }]);
    await expect(rig.step([{ request: { ...request, next: 19 }, end: 20 }])).rejects.toMatchObject({ code: 'step-refused' });
    await rig.step([short(request, 5)]);
    await rig.step([short(request, 5)]);
    for (const next of [24, 31])
      await expect(rig.step([{ request: { ...request, next }, end: 32 }])).rejects.toMatchObject({ code: 'step-refused' });
    await rig.step([{ request, end: 60 }]);
    await requireCold(rig, request, 'a request that was refused');
  });
});

describe('a step that is told that no snapshot follows', () => {
  test('leaves the state page as it is, until it is settled or a longer step comes', async () => {
    twoLayers(RING, { ssm_state: 'optional' });
    const request = await rig.open(textOf(1, 60));
    await rig.step([{ request, end: 20 }]);
    const before = await rig.slot(request, 0, 'ssm_state');
    for (let i = 0; i < 3; i++) await rig.step([short(request)]);
    expect(await rig.slot(request, 0, 'ssm_state')).toEqual(before);
    rig.settle(request);
    const settled = await rig.slot(request, 0, 'ssm_state');
    expect(settled).not.toEqual(before);
    const other = await rig.open(textOf(1, 60), { lookup: false });
    await rig.step([{ request: other, end: 23 }]);
    // To the bit, in the first layer: those above get what is summed up in another order.
    expect((await rig.slot(other, 0, 'ssm_state')).slice(0, 512)).toEqual(settled.slice(0, 512));
    await rig.step([short(request)]);
    await requireCold(rig, request, 'a settled request');
  });

  test('writes the state all the same without a sequence to remember it by', async () => {
    twoLayers(RING);
    const request = await rig.open(textOf(1, 30));
    await rig.step([{ request, end: 20, hasSequence: false }]);
    for (let i = 0; i < 3; i++) await rig.step([{ ...short(request), hasSequence: false }]);
    rig.commit(request, { snapshot: true });
    const again = await rig.open(textOf(1, 30));
    expect(again.matched).toBe(23);
    await rig.step([{ request: again, end: 30 }]);
    await requireCold(rig, again, 'who continues from the snapshot');
  });

  test('goes through rings of other lengths and past layers without one', async () => {
    rig = new RequestRig(device, [
      { ...TINY, layerId: 0, replay: { rows: 4, maxTokens: 2 } },
      { ...TINY, layerId: 1 },
      { ...TINY, layerId: 2, replay: { rows: 16, maxTokens: 5 }, policies: { conv_state: 'private', replay_ring: 'required' } },
    ]);
    expect(rig.consumer.supports.rewind).toBe(false);
    const request = await rig.open(textOf(1, 60));
    await rig.step([{ request, end: 9 }]);
    for (const numTokens of [1, 2, 3, 1, 5, 6, 1, 1, 1, 4]) await rig.step([short(request, numTokens)]);
    rig.settle(request);
    rig.commit(request, { snapshot: true });
    await requireCold(rig, request, 'a request');
    const again = await rig.open(textOf(1, 60));
    expect(again.matched).toBe(34);
    await rig.step([{ request: again, end: 60 }]);
    await requireCold(rig, again, 'who continues from the snapshot');
  });
});

test('a ring that is as large as the state lies elsewhere', async () => {
  const shape = { numHeads: 1, headDim: 4, stateSize: 5, numGroups: 1, convWidth: 3 };
  const policies = { ssm_state: 'private', conv_state: 'private' } as const;
  rig = new RequestRig(device, [{ ...shape, layerId: 0, replay: { rows: 2, maxTokens: 1 }, policies }]);
  const [state, , ring] = rig.consumer.layers[0].buffers;
  expect(ring.size).toBe(state.size);
  const request = await rig.open(textOf(1, 30));
  await rig.step([{ request, end: 8 }]);
  for (let i = 0; i < 8; i++) await rig.step([short(request)]);
  await requireCold(rig, request, 'a request');
});

describe('requests', () => {
  test('that take turns in steps of one shape stay apart', async () => {
    twoLayers({ rows: 6, maxTokens: 2 });
    const open = await Promise.all([1, 2].map((id) => rig.open(textOf(id, 40))));
    for (const request of open) await rig.step([{ request, end: 5 }]);
    for (let turn = 0; turn < 20; turn++) for (const request of open) await rig.step([short(request)]);
    for (const request of open) await requireCold(rig, request, 'one of two');
  });

  test.each([undefined, RING])(
    'leave the same checkpoints to the bit alone and in every order of a batch, ring %j',
    async (replay) => {
      twoLayers(replay);
      const texts = [10, 70, 33].map((length, id) => textOf(id, length));
      const roles = ['ssm_state', 'conv_state'] as const;
      const checkpoints = (request: TestRequest) => Promise.all(roles.map((role) => rig.slot(request, 1, role)));
      const end = (request: TestRequest) => Math.min(request.next + 16, request.tokens.length);
      const alone = new Map<string, Uint8Array[]>();
      for (const [id, tokens] of texts.entries()) {
        const request = await rig.open(tokens, { lookup: false });
        while (request.next < tokens.length) {
          await rig.step([{ request, end: end(request) }]);
          alone.set(`${id} ${request.next}`, await checkpoints(request));
        }
        request.kv.close();
      }
      for (const order of [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
      ]) {
        const open = await Promise.all(texts.map((tokens) => rig.open(tokens, { lookup: false })));
        for (;;) {
          const parts = order.flatMap((i) => (open[i].next < texts[i].length ? [{ request: open[i], end: end(open[i]) }] : []));
          if (parts.length === 0) break;
          await rig.step(parts);
          for (const { request } of parts) {
            rig.commit(request, { snapshot: true });
            expect(await checkpoints(request)).toEqual(alone.get(`${open.indexOf(request)} ${request.next}`));
          }
        }
        for (const { kv } of open) kv.close();
        rig.manager.clearReusableBlocks();
      }
    },
  );

  test('that begin again at token 0, as after the loss of a device, begin from zeros', async () => {
    twoLayers(RING);
    const request = await rig.open(textOf(1, 40));
    await rig.step([{ request, end: 20 }]);
    await rig.step([short(request, 4)]);
    for (const first of [
      { request, end: 30 },
      { request, end: 3, snapshot: false },
    ]) {
      rig.rewind(request, 0);
      await rig.step([first]);
      await rig.step([short(request, 2)]);
      await requireCold(rig, request, 'a request that began again');
    }
  });

  test('take their rings along when they are suspended', async () => {
    twoLayers(RING);
    const request = await rig.open(textOf(1, 60));
    await rig.step([{ request, end: 20 }]);
    await rig.step([short(request, 4)]);
    rig.commit(request, { snapshot: false });
    request.kv.suspend();
    await rig.cold(textOf(2, 40));
    expect(await request.kv.resume()).toBe(true);
    await rig.step([short(request, 4)]);
    await rig.step([{ request, end: 60 }]);
    await requireCold(rig, request, 'a request that was suspended');
  });

  test('fork once they are settled', async () => {
    twoLayers(RING);
    const request = await rig.open(textOf(1, 60));
    await rig.step([{ request, end: 20 }]);
    await rig.step([short(request, 6, 4)]);
    rig.rewind(request, 24);
    rig.commit(request, { snapshot: false });
    rig.settle(request);
    const kv = request.kv.fork();
    if (!kv) throw new Error('no room for a fork');
    const forked: TestRequest = { ...request, kv, rows: [...request.rows] };
    await rig.step([short(forked, 3), short(request, 5)]);
    await rig.step([short(request), short(forked)]);
    for (const each of [forked, request]) await requireCold(rig, each, 'a fork');
  });

  test('have beams with a ring each, at the same place', async () => {
    twoLayers({ rows: 8, maxTokens: 3 });
    const request = await rig.open(textOf(1, 20), { lookup: false });
    request.kv.stopCommitting();
    await rig.step([{ request, end: 18 }]);
    await rig.step([short(request, 2)]);
    request.kv.resize(null, 20);
    expect(request.kv.forkBeams(3)).toBe(true);
    let texts = [0, 1, 2].map(() => [...request.tokens]);
    for (let turn = 0; turn < 9; turn++) {
      if (turn === 4) {
        request.kv.reorderBeams([2, 2, 0]);
        texts = [texts[2], texts[2], texts[0]];
      }
      texts = texts.map((text, beam) => [...text, 10_000 + 100 * turn + beam]);
      const end = texts[0].length;
      const outputs = await rig.step(texts.map((tokens, index) => ({ request, end, snapshot: false, beam: { index, tokens } })));
      for (const [beam, tokens] of texts.entries()) {
        const expected = await rig.cold(tokens);
        expect(differenceFrom(0, [outputs[beam]], expected.slice(-1))).toBeLessThan(1e-4);
      }
      request.kv.resize(end, end);
      request.next = end;
    }
    const uneven = [0, 1].map((index) => ({ request, end: request.next + 1 + index, beam: { index, tokens: texts[index] } }));
    await expect(rig.step(uneven)).rejects.toMatchObject({ code: 'step-refused' });
  });
});

describe('matched tokens that are given again in several steps', () => {
  const mixes: [string, Partial<Record<Mamba2Role, ReusePolicy>>][] = [
    ['state', { ssm_state: 'private' }],
    ['tail', { conv_state: 'private' }],
  ];
  test.each(mixes)('fill a private %s from what the reused pages held before', async (_, policies) => {
    twoLayers(RING, policies);
    const tokens = textOf(1, 50);
    const owner = await rig.open(tokens);
    await rig.step([{ request: owner, end: 30 }]);
    rig.commit(owner);
    owner.kv.close();
    for (const ends of [[5, 6, 17, 50], [29, 31, 50], [30, 50], [50]]) {
      const request = await rig.open(tokens);
      expect([request.matched, request.next]).toEqual([30, 0]);
      for (const end of ends) await rig.step([{ request, end }]);
      await requireCold(rig, request, `steps that end at ${ends}`);
      rig.commit(request, { snapshot: false });
      request.kv.close();
    }
  });

  test('are the last ones, as many as the convolution looks back at, for the tail of the first layer alone', async () => {
    rig = new RequestRig(device, [{ ...TINY, layerId: 0, replay: RING, policies: { conv_state: 'private' } }]);
    const tokens = textOf(1, 50);
    const owner = await rig.open(tokens);
    await rig.step([{ request: owner, end: 30 }]);
    rig.commit(owner);
    for (const ends of [[28, 29, 30, 50], [29, 31, 50], [50]]) {
      const request = await rig.open(tokens);
      expect([request.matched, request.next]).toEqual([30, 27]);
      for (const end of ends) await rig.step([{ request, end }]);
      await requireCold(rig, request, `steps that end at ${ends}`);
    }
  });

  test('are refused without a sequence to keep that for', async () => {
    twoLayers(RING, { ssm_state: 'private' });
    const owner = await rig.open(textOf(1, 50));
    await rig.step([{ request: owner, end: 30 }]);
    rig.commit(owner);
    const request = await rig.open(textOf(1, 50));
    await expect(rig.step([{ request, end: 9, hasSequence: false }])).rejects.toMatchObject({ code: 'step-refused' });
    await rig.step([{ request, end: 50, hasSequence: false }]);
    await requireCold(rig, request, 'the same in one step');
  });
});
