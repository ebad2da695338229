import { AdapterError } from '@bufferwise/adapter-kit';
import type { Tensor } from 'onnxruntime-common';
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { OnnxDecoder, OnnxDecoderError, type OnnxDecoderErrorCode } from '../src/index.ts';
import {
  coldLogits,
  createRig,
  expectClose,
  finishPrompt,
  leaveBehind,
  type Rig,
  someTokens,
  tinySession,
} from './support/rig.ts';

const PROMPT = someTokens(15);

const failure = (code: OnnxDecoderErrorCode) => expect.objectContaining({ name: OnnxDecoderError.name, code });
const closed = expect.objectContaining({ name: AdapterError.name, code: 'plugin-closed' });

/** Slots of the device that an open request holds. */
const slotsInUse = ({ manager }: Rig) => manager.storageStatistics(0)[0].unavailable;

test('a run that fails ends its sequence and releases its pages, and what was published serves the next one', async () => {
  const rig = await createRig();
  const sequence = await rig.decoder.open({ tokens: PROMPT });
  const bystander = await rig.decoder.open({ tokens: PROMPT });
  await sequence.forward(PROMPT.slice(0, 9));
  const cause = new Error('out of memory');
  rig.session.beforeRun = () => {
    throw cause;
  };
  const failed = sequence.forward(PROMPT.slice(9));
  const behind = sequence.forward([1]);
  const late = expect(behind).rejects.toEqual(closed);
  await expect(failed).rejects.toEqual(failure('onnx-run'));
  await expect(failed).rejects.toHaveProperty('cause', cause);
  await late;
  expect(slotsInUse(rig)).toBe(0);
  await expect(sequence.forward([1])).rejects.toEqual(closed);
  await sequence.close();

  rig.session.beforeRun = () => {};
  const again = await rig.decoder.open({ tokens: PROMPT });
  expect(again.matched).toBe(8);
  const expected = await coldLogits(PROMPT);
  for (const other of [again, bystander]) expectClose(await finishPrompt(other), expected);
});

test('a run that fails in the middle of a generation releases its pages', async () => {
  const rig = await createRig();
  rig.session.beforeRun = (number) => {
    if (number === 4) throw new Error('device removed');
  };
  const tokens: number[] = [];
  const answer = (async () => {
    for await (const token of rig.decoder.generate({ tokens: PROMPT, maxTokens: 10 })) tokens.push(token);
  })();
  await expect(answer).rejects.toEqual(failure('onnx-run'));
  expect(tokens).toHaveLength(3);
  expect(slotsInUse(rig)).toBe(0);
});

test('an answer of another shape than the metadata promised ends the sequence before a page is written', async () => {
  const rig = await createRig({ newRowsOnly: true });
  await leaveBehind(rig, [1, 2, 3]);
  const sequence = await rig.decoder.open({ tokens: [1, 2, 3, 4, 5] });
  expect(sequence.matched).toBe(3);
  await expect(finishPrompt(sequence)).rejects.toEqual(failure('onnx-output'));
  await expect(finishPrompt(sequence)).rejects.toEqual(closed);
  expect(slotsInUse(rig)).toBe(0);
});

test('every tensor that was made or given back is disposed of in the end', async () => {
  const rig = await createRig();
  const live = new Set<Tensor>();
  const watch = (tensor: Tensor) => {
    if (live.has(tensor)) return tensor;
    live.add(tensor);
    const dispose = tensor.dispose.bind(tensor);
    tensor.dispose = () => {
      live.delete(tensor);
      dispose();
    };
    return tensor;
  };
  rig.session.beforeFeed = watch;
  rig.session.afterRun = (outputs) => {
    for (const tensor of Object.values(outputs)) watch(tensor);
    return outputs;
  };
  for await (const _ of rig.decoder.generate({ tokens: PROMPT, maxTokens: 6 }));
  expect(live.size).toBe(0);
  const sequence = await rig.decoder.open({ tokens: PROMPT });
  await finishPrompt(sequence);
  expect(live.size).toBe(4);
  rig.session.beforeRun = () => {
    throw new Error('no');
  };
  await expect(sequence.forward([1])).rejects.toEqual(failure('onnx-run'));
  expect(live.size).toBe(0);
});

test('tensors that stay on a GPU are fed back as they are, and read once a block', async () => {
  const rig = await createRig();
  const inner = new Map<Tensor, Tensor>();
  let reads = 0;
  rig.session.afterRun = (outputs) =>
    Object.fromEntries(
      Object.entries(outputs).map(([name, tensor]) => {
        if (name === 'logits') return [name, tensor];
        const far = {
          type: tensor.type,
          dims: tensor.dims,
          location: 'gpu-buffer',
          get data(): never {
            throw new Error('not in this process');
          },
          getData: async () => {
            reads++;
            return tensor.data;
          },
          dispose: () => inner.delete(far),
        } as unknown as Tensor;
        inner.set(far, tensor);
        return [name, far];
      }),
    );
  rig.session.beforeFeed = (tensor) => inner.get(tensor) ?? tensor;
  const sequence = await rig.decoder.open();
  for (const token of PROMPT.slice(0, 8)) await sequence.forward([token]);
  expect(reads).toBe(2 * 4);
  await sequence.close();
  expect(inner.size).toBe(0);
  rig.session.afterRun = (outputs) => outputs;
  const warm = await leaveBehind(rig, PROMPT);
  expectClose(warm, await coldLogits(PROMPT));
});

test('a tensor that does not come back from a GPU ends its sequence, or is left out when it closes', async () => {
  const rig = await createRig();
  const inner = new Map<Tensor, Tensor>();
  rig.session.afterRun = ({ logits, ...present }) => ({
    logits,
    ...Object.fromEntries(
      Object.entries(present).map(([name, tensor]) => {
        const getData = async () => Promise.reject(new Error('device lost'));
        const far = { dims: tensor.dims, location: 'gpu-buffer', getData, dispose: () => inner.delete(far) } as unknown as Tensor;
        inner.set(far, tensor);
        return [name, far];
      }),
    ),
  });
  rig.session.beforeFeed = (tensor) => inner.get(tensor) ?? tensor;
  const short = await rig.decoder.open();
  await short.forward([1, 2]);
  await expect(short.close()).rejects.toEqual(failure('onnx-run'));
  const long = await rig.decoder.open();
  await expect(long.forward(PROMPT)).rejects.toEqual(failure('onnx-run'));
  expect(inner.size).toBe(0);
  expect(slotsInUse(rig)).toBe(0);
  expect(rig.manager.probeReuse(PROMPT)).toBe(0);
});

test('a call that is aborted while it waits is given up at once, and changes nothing', async () => {
  const rig = await createRig();
  const [first, second] = await Promise.all([rig.decoder.open({ tokens: PROMPT }), rig.decoder.open({ tokens: PROMPT })]);
  let goOn = () => {};
  rig.session.beforeRun = () => new Promise<void>((resolve) => (goOn = resolve));
  const running = finishPrompt(first);
  const controller = new AbortController();
  const waiting = second.forward(PROMPT, { signal: controller.signal });
  controller.abort(new Error('changed my mind'));
  await expect(waiting).rejects.toThrow('changed my mind');
  expect(second.length).toBe(0);
  await expect(second.forward(PROMPT, { signal: controller.signal })).rejects.toThrow('changed my mind');
  rig.session.beforeRun = () => {};
  goOn();
  await running;
  await finishPrompt(second);
  expect(rig.session.runs).toEqual([15, 15]);
});

test('an abort between two runs of a call ends it there, and the sequence can go on', async () => {
  const rig = await createRig({ options: { maxTokensPerRun: 4 } });
  const sequence = await rig.decoder.open({ tokens: PROMPT });
  const controller = new AbortController();
  rig.session.beforeRun = (number) => {
    if (number === 2) controller.abort(new Error('stop'));
  };
  await expect(sequence.forward(PROMPT, { signal: controller.signal })).rejects.toThrow('stop');
  expect(sequence.length).toBe(8);
  const logits = await sequence.forward(PROMPT.slice(sequence.length));
  expectClose(logits, await coldLogits(PROMPT));
});

test('tokens that are none are refused before anything runs', async () => {
  const rig = await createRig();
  for (const bad of [-1, 32, 1.5, Number.NaN, 2 ** 32]) {
    await expect(rig.decoder.open({ tokens: [1, bad] })).rejects.toEqual(failure('onnx-tokens'));
    const sequence = await rig.decoder.open();
    await expect(sequence.forward([1, bad])).rejects.toEqual(failure('onnx-tokens'));
    await expect(sequence.forward([])).rejects.toEqual(failure('onnx-tokens'));
    await sequence.forward([31]);
    await sequence.close();
  }
  expect(rig.session.tokensRun).toBe(5);
  await expect(rig.decoder.open({ tokens: [1], scope: { salt: -1 } })).rejects.toHaveProperty('code', 'invalid-scope');
});

test('options out of range are refused', async () => {
  const session = await tinySession();
  for (const options of [{ tokensPerBlock: 0 }, { deviceBytes: 0.5 }, { maxTokensPerRun: -1 }])
    await expect(OnnxDecoder.create({ session, ort, ...options })).rejects.toEqual(failure('onnx-options'));
  const { manager } = await createRig();
  await expect(OnnxDecoder.create({ session, ort, manager, deviceBytes: 1 })).rejects.toEqual(failure('onnx-options'));
});

test('closing a decoder ends its sequences after the calls under way, and refuses new ones', async () => {
  const decoder = await OnnxDecoder.create({ session: await tinySession(), ort });
  const sequence = await decoder.open({ tokens: PROMPT });
  const running = finishPrompt(sequence);
  const closing = decoder.close();
  await running;
  await closing;
  await decoder.close();
  await expect(sequence.forward([1])).rejects.toEqual(closed);
  await expect(decoder.open()).rejects.toEqual(closed);
  expect(() => decoder.manager.probeReuse(PROMPT)).toThrow();
});
