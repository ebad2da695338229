import type { ConnectorGroup, PageNumbers } from '@bufferwise/adapter-kit';
import { decodeHalves, encodeHalves } from '@bufferwise/adapter-kit';
import { fullAttention, lifecycleId, ssmState } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deflate, inflate } from './deflate.ts';
import { FRAME_BYTES, PageCodec, type PageEncoding } from './page-codec.ts';

const bytesOf = (numbers: Float32Array | Uint16Array) => new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);

/** A group with one buffer for each entry, and some bytes of nobody behind each. */
function groupOf(
  buffers: readonly (Partial<PageNumbers> & { bytes: number })[],
  gap = 0,
  kind: 'attention' | 'ssm' = 'attention',
) {
  let offset = 0;
  const placed = buffers.map(({ bytes, type, rowLength = 1 }, layerId) => {
    const buffer = { layerId, role: 'key', offset, bytes, ...(type && { numbers: { type, rowLength } }) };
    offset += bytes + gap;
    return buffer;
  });
  const lifecycle = kind === 'ssm' ? ssmState() : fullAttention();
  return { groupId: lifecycleId(0), lifecycle, layerIds: [0], pageBytes: offset, buffers: placed } satisfies ConnectorGroup;
}

const exact = new PageCodec(undefined, {});
const through = async (codec: PageCodec, page: Uint8Array) => codec.decode(await codec.encode(page), page.length);

describe('an exact encoding', () => {
  const anyBytes = fc.oneof(
    fc.uint8Array({ maxLength: 3000 }),
    fc.float32Array({ maxLength: 800 }).map(bytesOf),
    fc.tuple(fc.nat(255), fc.nat(5000)).map(([byte, length]) => new Uint8Array(length).fill(byte)),
  );

  test('gives back any bytes, whatever the numbers are said to be, and never adds more than its frame', async () => {
    await fc.assert(
      fc.asyncProperty(anyBytes, fc.constantFrom('f32', 'f16', 'int8', undefined), fc.boolean(), async (page, type, compress) => {
        const codec = new PageCodec(groupOf([{ bytes: page.length, type }]), { compress });
        const encoded = await codec.encode(page);
        expect(encoded.length).toBeLessThanOrEqual(PageCodec.maxBytes(page.length));
        expect(await codec.decode(encoded, page.length)).toEqual(page);
        expect(codec.isExact).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('shrinks numbers that have their size in common', async () => {
    const page = bytesOf(Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i * i) * 3));
    const encoded = await exact.encode(page);
    expect(encoded.length).toBeLessThan(0.9 * page.length);
    expect(await exact.decode(encoded, page.length)).toEqual(page);
  });

  test('leaves alone what is as good as random, and looks no further', async () => {
    // Bytes of a hash: nothing in them is more likely than another.
    const page = Uint8Array.from({ length: 65_536 }, (_, i) => Math.imul(i ^ 0x9e37, 0x85ebca6b) >>> 19);
    expect((await exact.encode(page)).length).toBe(page.length + FRAME_BYTES);
  });

  test('owns what it gives out', async () => {
    const page = Uint8Array.from({ length: 300 }, (_, i) => i % 7);
    const encoded = await new PageCodec(undefined, { compress: false }).encode(page);
    const decoded = await exact.decode(encoded, 300);
    encoded.fill(0);
    expect(decoded).toEqual(page);
  });
});

describe('hostile bytes', () => {
  test('are a page or none, never an exception, and never more than asked for', async () => {
    const page = bytesOf(Float32Array.from({ length: 256 }, (_, i) => Math.sin(i)));
    const group = groupOf([{ bytes: page.length, type: 'f32', rowLength: 16 }]);
    for (const encoding of [{}, { int8: true }, { compress: false }] as PageEncoding[]) {
      const codec = new PageCodec(group, encoding);
      const encoded = await codec.encode(page);
      await fc.assert(
        fc.asyncProperty(
          fc.nat(encoded.length - 1),
          fc.integer({ min: 1, max: 255 }),
          fc.nat(encoded.length),
          async (at, flip, cut) => {
            const damaged = encoded.slice();
            damaged[at] ^= flip;
            for (const bytes of [damaged, encoded.subarray(0, cut), Uint8Array.of(...encoded, flip)]) {
              const decoded = await codec.decode(bytes, page.length);
              if (decoded !== null) expect(decoded.length).toBeLessThanOrEqual(page.length);
            }
          },
        ),
      );
    }
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
        const decoded = await exact.decode(bytes, 100);
        expect(decoded?.length ?? 0).toBeLessThanOrEqual(100);
      }),
    );
  });

  test('that say they are larger than a page may be are none', async () => {
    const encoded = await exact.encode(new Uint8Array(1000));
    expect(await exact.decode(encoded, 999)).toBeNull();
    expect(await exact.decode(encoded, 1000)).toEqual(new Uint8Array(1000));
  });

  test('that would become more than they say are not followed to their end', async () => {
    const bomb = await deflate(new Uint8Array(1 << 26));
    expect(await inflate(bomb, 1 << 16)).toBeNull();
    expect(await inflate(bomb.subarray(0, 1000), 1 << 16)).toBeNull();
    // Nor is memory taken for a length that no deflated bytes can have.
    expect(await inflate(bomb.subarray(0, 10), 1 << 30)).toBeNull();
  });
});

describe('numbers in 8 bits', () => {
  const rowLength = 16;
  const finite = fc.float({ noNaN: true, noDefaultInfinity: true, min: -65_504, max: 65_504 });
  const rows = fc
    .array(finite, { minLength: 3 * rowLength, maxLength: 3 * rowLength })
    .map((numbers) => Float32Array.from(numbers));

  test.each(['f32', 'f16'] as const)('of %s are as near as the largest of their row / 254', async (type) => {
    await fc.assert(
      fc.asyncProperty(rows, async (given) => {
        const numbers = type === 'f32' ? given : decodeHalves(encodeHalves(given));
        const page = type === 'f32' ? bytesOf(numbers) : bytesOf(encodeHalves(numbers));
        const codec = new PageCodec(groupOf([{ bytes: page.length, type, rowLength }]), { int8: true });
        const back = (await through(codec, page)) as Uint8Array;
        const found = type === 'f32' ? new Float32Array(back.buffer) : decodeHalves(new Uint16Array(back.buffer));
        for (let row = 0; row < 3; row++) {
          const slice = (all: Float32Array) => all.subarray(row * rowLength, (row + 1) * rowLength);
          const largest = Math.max(...slice(numbers).map(Math.abs));
          // Half a step of the type, at numbers of this size.
          const halfStep = type === 'f32' ? largest * 2 ** -23 : Math.max(largest * 2 ** -11, 2 ** -25);
          const errors = slice(found).map((value, i) => Math.abs(value - slice(numbers)[i]));
          expect(Math.max(...errors)).toBeLessThanOrEqual(largest / 254 + halfStep);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('take a quarter, and stay what they are when they are kept again', async () => {
    const page = bytesOf(Float32Array.from({ length: 2048 }, (_, i) => Math.sin(i * 12.9898) * 5));
    const codec = new PageCodec(groupOf([{ bytes: page.length, type: 'f32', rowLength: 64 }]), { int8: true });
    const encoded = await codec.encode(page);
    expect(encoded.length).toBeLessThanOrEqual(page.length / 4 + 4 * 32 + FRAME_BYTES);
    const once = (await codec.decode(encoded, page.length)) as Uint8Array;
    const twice = (await through(codec, once)) as Uint8Array;
    const [a, b] = [new Float32Array(once.buffer), new Float32Array(twice.buffer)];
    expect(Math.max(...a.map((value, i) => Math.abs(value - b[i])))).toBeLessThan(1e-5);
    expect(codec.isExact).toBe(false);
  });

  test('leave every other byte of a page as it is', async () => {
    const group = groupOf(
      [{ bytes: 64, type: 'f32', rowLength: 4 }, { bytes: 32 }, { bytes: 32, type: 'f16', rowLength: 16 }],
      12,
    );
    const page = Uint8Array.from({ length: group.pageBytes }, (_, i) => (i * 37) & 63);
    const back = (await through(new PageCodec(group, { int8: true }), page)) as Uint8Array;
    const isRow = (i: number) => group.buffers.some(({ offset, bytes, numbers }) => numbers && i >= offset && i < offset + bytes);
    expect([...back].filter((_, i) => !isRow(i))).toEqual([...page].filter((_, i) => !isRow(i)));
    expect([...back]).not.toEqual([...page]);
  });

  test.each([
    ['a number that is none', Number.NaN],
    ['an infinite one', Number.NEGATIVE_INFINITY],
    ['a row of next to nothing', 2 ** -140],
  ])('are not made of a page with %s, which is kept exactly', async (_, odd) => {
    const numbers = new Float32Array(64).fill(1, 0, 32);
    numbers[40] = odd;
    const codec = new PageCodec(groupOf([{ bytes: 256, type: 'f32', rowLength: 32 }]), { int8: true });
    expect(await through(codec, bytesOf(numbers))).toEqual(bytesOf(numbers));
  });

  test('are not made of states, unless that is asked for, nor of what nobody described', () => {
    const state = groupOf([{ bytes: 64, type: 'f32', rowLength: 4 }], 0, 'ssm');
    expect(new PageCodec(state, { int8: true }).form).toBeNull();
    expect(new PageCodec(state, { int8: { states: true } }).form).toMatch(/^[0-9a-f]{16}$/);
    expect(new PageCodec(groupOf([{ bytes: 64 }]), { int8: true }).isExact).toBe(true);
    expect(new PageCodec(groupOf([{ bytes: 64, type: 'int8' }]), { int8: true }).isExact).toBe(true);
  });

  test('of other rows are none', async () => {
    const page = bytesOf(new Float32Array(16).fill(3));
    const [a, b] = [4, 8].map((rowLength) => new PageCodec(groupOf([{ bytes: 64, type: 'f32', rowLength }]), { int8: true }));
    expect(a.form).not.toBe(b.form);
    expect(await b.decode(await a.encode(page), 64)).toBeNull();
    expect(await exact.decode(await a.encode(page), 64)).toBeNull();
  });
});
