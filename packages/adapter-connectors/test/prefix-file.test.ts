import { blocksToLoad, type ConnectorLayout, longestLoad, type PageStore } from '@bufferwise/adapter-kit';
import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import { crc32c } from '@bufferwise/cache-manager/outside';
import { slidingWindow } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodedStore } from '../src/encoding/encoded-store.ts';
import { type ExportOptions, exportPrefix, importPrefix, inspectPrefix, PrefixFileError } from '../src/prefix-file/index.ts';
import { anyLayout, contents, fill, groupOf, mixedLayout, pageOf } from './support/prefixes.ts';

const TOKENS = Array.from({ length: 22 }, (_, i) => i * 3 + 1);
const layout = mixedLayout;

async function fileOf(options: Partial<ExportOptions> = {}): Promise<Uint8Array> {
  const store = new MemoryPageStore();
  const all = { store, layout, tokens: TOKENS, ...options };
  if (options.store === undefined) await fill(store, all.layout, all.tokens, all.scope);
  const found = await exportPrefix(all);
  if (found === null) throw new Error('nothing to export');
  return found.bytes();
}

const refusal = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PrefixFileError);
  return error as PrefixFileError;
};

/** A file whose JSON was changed by somebody who knows how to make sums. */
function withHeader(file: Uint8Array, change: (header: Record<string, unknown>) => void): Uint8Array {
  const view = new DataView(file.buffer, file.byteOffset);
  const [jsonBytes, tokenBytes] = [view.getUint32(12, true), 4 * view.getUint32(16, true)];
  const header = JSON.parse(new TextDecoder().decode(file.subarray(24, 24 + jsonBytes)));
  change(header);
  const json = new TextEncoder().encode(JSON.stringify(header));
  const tokens = file.subarray(24 + jsonBytes, 24 + jsonBytes + tokenBytes);
  const pages = file.subarray(28 + jsonBytes + tokenBytes);
  const changed = new Uint8Array(28 + json.length + tokens.length + pages.length);
  changed.set(file.subarray(0, 24));
  changed.set(json, 24);
  changed.set(tokens, 24 + json.length);
  changed.set(pages, 28 + json.length + tokens.length);
  return resealed(changed, json.length, tokenBytes / 4);
}

/** The same bytes with lengths as they are told, and sums that are right. */
function resealed(file: Uint8Array, jsonBytes: number, numTokens: number, version = 1): Uint8Array {
  const view = new DataView(file.buffer, file.byteOffset);
  view.setUint32(8, version, true);
  view.setUint32(12, jsonBytes, true);
  view.setUint32(16, numTokens, true);
  view.setUint32(20, crc32c(file.subarray(0, 20)), true);
  const end = 24 + jsonBytes + 4 * numTokens;
  if (end + 4 <= file.length) view.setUint32(end, crc32c(file.subarray(0, end)), true);
  return file;
}

describe('an exported prefix', () => {
  test('has the pages that its end needs, and no other', async () => {
    const store = new MemoryPageStore();
    await fill(store, layout, TOKENS);
    const file = await exportPrefix({ store, layout, tokens: TOKENS, modelName: 'small' });
    expect(file?.info).toMatchObject({
      modelName: 'small',
      exact: true,
      compressed: true,
      salted: false,
      loraId: null,
      numPages: 5 + 3 + 1 + 2,
    });
    expect(file?.info.groups.map(({ ranges }) => ranges)).toEqual([
      [{ begin: 0, end: 5 }],
      [
        { begin: 0, end: 1 },
        { begin: 3, end: 5 },
      ],
      [{ begin: 4, end: 5 }],
      [{ begin: 3, end: 5 }],
    ]);
    expect(file?.info.tokens).toEqual(Uint32Array.from(TOKENS.slice(0, 20)));
    const into = new MemoryPageStore();
    const imported = await importPrefix(file as never, { store: into, layout });
    expect(imported).toMatchObject({ stored: 11, present: 0, refused: 0, isComplete: true });
    const there = await contents(into, layout, TOKENS);
    expect(there).toEqual(
      layout.groups.map((group) => {
        const needed = blocksToLoad(group, 0, 20, 4);
        return [0, 1, 2, 3, 4].map((block) => (needed.includes(block) ? pageOf(group, block) : null));
      }),
    );
  });

  test('is as long as the store allows, with optional groups where they can continue', async () => {
    const store = new MemoryPageStore();
    // State is there at the ends of blocks 1 and 3 only; the optional window lacks what is needed at 3.
    await fill(store, layout, TOKENS, undefined, ({ groupId }, block) =>
      groupId === 2 ? block % 2 === 1 : groupId === 3 ? block < 3 : true,
    );
    const file = await exportPrefix({ store, layout, tokens: TOKENS });
    expect(file?.info.tokens).toHaveLength(16);
    expect(file?.info.groups.map(({ numPages }) => numPages)).toEqual([4, 3, 1, 0]);
    const into = new MemoryPageStore();
    expect(await importPrefix((await file?.bytes()) as Uint8Array, { store: into, layout })).toMatchObject({ isComplete: true });
  });

  test('is none when the store has none, under this scope or at all', async () => {
    const store = new MemoryPageStore();
    expect(await exportPrefix({ store, layout, tokens: TOKENS })).toBeNull();
    await fill(store, layout, TOKENS);
    expect(await exportPrefix({ store, layout, tokens: TOKENS, scope: { salt: 1 } })).toBeNull();
    expect(await exportPrefix({ store, layout, tokens: TOKENS.slice(0, 3) })).toBeNull();
    expect(await exportPrefix({ store, layout, tokens: TOKENS })).not.toBeNull();
  });

  test('breaks off when the store loses a page, and what was written is refused', async () => {
    const store = new MemoryPageStore();
    await fill(store, layout, TOKENS);
    const file = await exportPrefix({ store, layout, tokens: TOKENS });
    const { keys } = await store.list();
    await store.delete(keys);
    const written: Uint8Array[] = [];
    const error = await refusal(
      (async () => {
        for await (const piece of file as NonNullable<typeof file>) written.push(piece);
      })(),
    );
    expect(error.code).toBe('prefix-lost');
    expect((await refusal(inspectPrefix(written[0], { verify: true }))).code).toBe('prefix-file-damaged');
  });

  test('takes no private group', async () => {
    const own = { ...layout, groups: [...layout.groups, groupOf(4, { kind: 'ssm', policy: 'private' }, 1)] };
    await expect(exportPrefix({ store: new MemoryPageStore(), layout: own, tokens: TOKENS })).rejects.toMatchObject({
      code: 'private-group',
    });
  });

  test('keeps digests of what is no text', async () => {
    const digest = Uint8Array.from({ length: 32 }, (_, i) => 200 + i);
    const tokens = [1, digest, 3, 4, 5, 6, 7, digest];
    const file = await fileOf({ tokens });
    expect((await inspectPrefix(file)).tokens).toEqual(tokens);
    const into = new MemoryPageStore();
    await importPrefix(file, { store: into, layout });
    expect((await contents(into, layout, tokens))[0].every((page) => page !== null)).toBe(true);
    expect((await contents(into, layout, [1, 2, 3, 4, 5, 6, 7, 8]))[0]).toEqual([null, null]);
  });
});

describe('what is read', () => {
  test('may be a blob, a stream, an array or any pieces', async () => {
    const file = await fileOf();
    async function* pieces(size: number) {
      for (let i = 0; i < file.length; i += size) yield file.subarray(i, i + size);
      yield new Uint8Array(0);
    }
    const sources = [
      file,
      new Blob([file as never]),
      new Blob([file as never]).stream(),
      new Response(file as never).body,
      pieces(1),
      pieces(7),
      pieces(1000),
    ];
    const expected = await inspectPrefix(file, { verify: true });
    expect(expected.fileBytes).toBe(file.length);
    for (const source of sources) expect(await inspectPrefix(source as never, { verify: true })).toEqual(expected);
  });

  test('is no more than the header when only that is asked for, and the source is told', async () => {
    const file = await fileOf();
    let numRead = 0;
    let isLeft = false;
    async function* pieces() {
      try {
        for (let i = 0; i < file.length; i += 64) {
          numRead += 64;
          yield file.subarray(i, i + 64);
        }
      } finally {
        isLeft = true;
      }
    }
    const info = await inspectPrefix(pieces());
    expect(info.fileBytes).toBeNull();
    expect(numRead).toBeLessThan(file.length - 500);
    expect(isLeft).toBe(true);
  });

  test('ends with the reason of a signal', async () => {
    const file = await fileOf();
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await expect(inspectPrefix(file, { verify: true, signal })).rejects.toBe(reason);
    await expect(importPrefix(file, { store: new MemoryPageStore(), layout, signal })).rejects.toBe(reason);
    const store = new MemoryPageStore();
    await fill(store, layout, TOKENS);
    await expect(exportPrefix({ store, layout, tokens: TOKENS, signal })).rejects.toBe(reason);
  });
});

describe('a receiver', () => {
  const importing = async (
    file: Uint8Array,
    options: { layout?: ConnectorLayout; store?: PageStore; scope?: object; limits?: object } = {},
  ) => {
    const store = options.store ?? new MemoryPageStore();
    const error = await refusal(importPrefix(file, { layout, ...options, store }));
    expect(store.statistics().stored).toBe(0);
    return error;
  };

  test('is told in what it differs', async () => {
    const file = await fileOf({ modelName: 'small' });
    const [full, window, state, optional] = layout.groups;
    const differing: [Partial<ConnectorLayout>, RegExp[]][] = [
      [{ modelFingerprint: 'another model' }, [/model: "small", a model in the file, another model here/]],
      [{ tokensPerBlock: 8 }, [/tokens-per-block: 4 in the file, 8 here/]],
      [
        { groups: [full, window, state] },
        [/group: optional a window of 9, layers 3, pages of 16 bytes, arranged as \w{16} in the file, no such group here/],
      ],
      [{ groups: [...layout.groups, groupOf(4, slidingWindow(8), 1)] }, [/no such group in the file, required a window of 8/]],
      [
        { groups: [{ ...full, pageBytes: 64 }, window, state, optional] },
        [/pages of 48 bytes, .* in the file, required full attention, layers 0, pages of 64 bytes, .* here/],
      ],
      [{ groups: [{ ...full, layerIds: [0, 7] }, window, state, optional] }, [/layers 0, .* layers 0 7/]],
      [
        { groups: [{ ...full, buffers: full.buffers?.map((each) => ({ ...each, pagesPerBlock: 2 })) }, window, state, optional] },
        [/arranged as (\w{16}) in the file, .*, arranged as (?!\1)\w{16} here/],
      ],
      [
        { groups: [full, window, { ...state, lifecycle: { kind: 'ssm', policy: 'optional' } }, optional] },
        [
          /required state, layers 2, pages of 80 bytes, .* in the file, no such group here/,
          /no such group in the file, optional state/,
        ],
      ],
    ];
    for (const [other, words] of differing) {
      const error = await importing(file, { layout: { ...layout, ...other } });
      expect(error.code).toBe('prefix-file-mismatch');
      expect(error.differences).toHaveLength(words.length);
      for (const word of words) expect(error.message).toMatch(word);
    }
    expect(
      await importPrefix(file, { store: new MemoryPageStore(), layout: { ...layout, groups: [...layout.groups].reverse() } }),
    ).toMatchObject({ isComplete: true });
  });

  test('of another version of the form is told so', async () => {
    const file = await fileOf();
    const view = new DataView(file.buffer);
    const error = await importing(resealed(file.slice(), view.getUint32(12, true), view.getUint32(16, true), 2));
    expect(error).toMatchObject({
      code: 'prefix-file-version',
      message: expect.stringContaining('has version 2, and this reads 1'),
    });
  });

  test('with the salt of the export finds the prefix under it, and nobody else does', async () => {
    const scope = { salt: 77_310_226n, loraId: 5 };
    const file = await fileOf({ scope });
    expect(new TextDecoder('latin1').decode(file)).not.toMatch(/77310226/);
    expect(await inspectPrefix(file, { verify: true })).toMatchObject({ salted: true, loraId: 5n });
    for (const [given, words] of [
      [undefined, /under LoRA 5, and is to be imported without a LoRA/],
      [{ loraId: 6, salt: 77_310_226 }, /under LoRA 5, and is to be imported under LoRA 6/],
      [{ loraId: 5 }, /under a salt, and none was given/],
      [{ loraId: 5, salt: 78 }, /under another salt/],
    ] as const) {
      const error = await importing(file, { scope: given });
      expect(error).toMatchObject({ code: 'prefix-file-scope', message: expect.stringMatching(words) });
    }
    const store = new MemoryPageStore();
    await importPrefix(file, { store, layout, scope: { salt: 77_310_226, loraId: 5n } });
    expect((await contents(store, layout, TOKENS, scope))[0].every((page) => page !== null)).toBe(true);
    expect((await contents(store, layout, TOKENS))[0].every((page) => page === null)).toBe(true);
  });

  test('may take what was exported without a salt under any, and finds it there alone', async () => {
    const store = new MemoryPageStore();
    await importPrefix(await fileOf(), { store, layout, scope: { salt: 4 } });
    expect((await contents(store, layout, TOKENS, { salt: 4 }))[2][4]).toEqual(pageOf(layout.groups[2], 4));
    expect((await contents(store, layout, TOKENS))[2][4]).toBeNull();
  });

  test('has limits, and so has its store', async () => {
    const file = await fileOf();
    for (const [limits, word] of [
      [{ headerBytes: 500 }, /a header of \d+ bytes, and `limits.headerBytes` is 500/],
      [{ pageBytes: 79 }, /pages of 80 bytes, and `limits.pageBytes` is 79/],
      [{ totalBytes: 400 }, /pages together of \d+ bytes/],
    ] as const) {
      expect(await importing(file, { limits })).toMatchObject({
        code: 'prefix-file-too-large',
        message: expect.stringMatching(word),
      });
      expect((await refusal(inspectPrefix(file, { limits }))).code).toBe('prefix-file-too-large');
    }
    const small: PageStore = Object.create(new MemoryPageStore(), {
      limits: { value: { maxBatch: 2, maxPageBytes: 79 } },
      statistics: { value: () => ({ stored: 0 }) },
    });
    expect((await importing(file, { store: small })).code).toBe('prefix-file-too-large');
  });

  test('whose store is full is told that not all is there', async () => {
    const store = new MemoryPageStore({ quotaBytes: 200 });
    const { stored, refused, isComplete } = await importPrefix(await fileOf(), { store, layout });
    expect([stored > 0, stored + refused, isComplete]).toEqual([true, 11, false]);
  });

  test('keeps what it has', async () => {
    const store = new MemoryPageStore();
    await fill(store, layout, TOKENS);
    const before = await contents(store, layout, TOKENS);
    expect(await importPrefix(await fileOf(), { store, layout })).toMatchObject({ stored: 0, present: 11, isComplete: true });
    expect(await contents(store, layout, TOKENS)).toEqual(before);
  });
});

describe('numbers in 8 bits', () => {
  test('in a file are for stores of inexact pages, and for nobody else', async () => {
    const file = await fileOf({ encoding: { int8: true } });
    expect(await inspectPrefix(file, { verify: true })).toMatchObject({ exact: false });
    const error = await refusal(importPrefix(file, { store: new MemoryPageStore(), layout }));
    expect(error.code).toBe('prefix-file-inexact');
    const store = encodedStore(new MemoryPageStore(), { layout, int8: true });
    expect(await importPrefix(file, { store, layout })).toMatchObject({ isComplete: true });
    const there = await contents(store, layout, TOKENS);
    expect(there[2][4]).toEqual(pageOf(layout.groups[2], 4));
    const [a, b] = [there[0][3] as Uint8Array, pageOf(layout.groups[0], 3)].map((bytes) => new Float32Array(bytes.buffer));
    expect(Math.max(...a.map((value, i) => Math.abs(value - b[i])))).toBeLessThan(1 / 120);
    // What came out of an inexact store stays inexact, however it is kept.
    const again = await exportPrefix({ store, layout, tokens: TOKENS });
    expect(again?.info.exact).toBe(false);
    expect((await refusal(importPrefix(again as never, { store: new MemoryPageStore(), layout }))).code).toBe(
      'prefix-file-inexact',
    );
  });

  test('in other rows are refused', async () => {
    const file = await fileOf({ encoding: { int8: true } });
    const [full, ...rest] = layout.groups;
    const buffers = full.buffers?.map((buffer) => ({ ...buffer, numbers: { type: 'f32', rowLength: 2 } as const }));
    const other = { ...layout, groups: [{ ...full, buffers }, ...rest] };
    const store = encodedStore(new MemoryPageStore(), { layout: other, int8: true });
    const error = await refusal(importPrefix(file, { store, layout: other }));
    expect(error.message).toMatch(/rows in 8 bits [0-9a-f]{16} in the file, .* rows in 8 bits [0-9a-f]{16} here/);
  });
});

describe('laws', () => {
  test('what was exported is what is imported, for any layout, encoding, scope and gaps', async () => {
    const scopes = fc.record({
      salt: fc.option(fc.bigInt(0n, 2n ** 64n - 1n), { nil: undefined }),
      loraId: fc.option(fc.nat(), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(
        anyLayout,
        fc.array(fc.nat(0xffffffff), { maxLength: 30 }),
        scopes,
        fc.boolean(),
        fc.infiniteStream(fc.nat(9)),
        fc.integer({ min: 1, max: 300 }),
        async (any, tokens, scope, compress, dice, piece) => {
          const store = new MemoryPageStore();
          await fill(store, any, tokens, scope, () => dice.next().value !== 0);
          const file = await exportPrefix({ store, layout: any, tokens, scope, encoding: { compress } });
          const from = await contents(store, any, tokens, scope);
          const isThere = (groupId: number, block: number) => from[groupId][block] !== null;
          const longest = longestLoad(
            any.groups,
            { numTokens: tokens.length + 1, computedTokens: 0, tokensPerBlock: any.tokensPerBlock },
            ({ groupId }, block) => isThere(groupId, block),
          );
          expect(file?.info.tokens.length ?? 0).toBe(longest?.end ?? 0);
          if (file === null || longest === null) return;
          const bytes = await file.bytes();
          const into = new MemoryPageStore();
          async function* pieces() {
            for (let i = 0; i < bytes.length; i += piece) yield bytes.subarray(i, i + piece);
          }
          const { info, isComplete } = await importPrefix(pieces(), { store: into, layout: any, scope });
          expect(isComplete).toBe(true);
          expect(info).toEqual(file.info);
          const needed = any.groups.map((group) =>
            longest.groups.includes(group.groupId) ? blocksToLoad(group, 0, longest.end, any.tokensPerBlock) : [],
          );
          const expected = from.map((pages, g) => pages.map((page, block) => (needed[g].includes(block) ? page : null)));
          expect(await contents(into, any, tokens, scope)).toEqual(expected);
        },
      ),
      { numRuns: 150 },
    );
  });

  const outcomes = async (bytes: Uint8Array, numPages: number) => {
    await refusal(inspectPrefix(bytes, { verify: true }));
    const store = new MemoryPageStore();
    const error = await refusal(importPrefix(bytes, { store, layout }));
    expect(error.message).not.toBe('');
    const there = await contents(store, layout, TOKENS);
    const wrong = there.flatMap((pages, g) =>
      pages.filter((page, block) => page !== null && !same(page, pageOf(layout.groups[g], block))),
    );
    expect(wrong).toEqual([]);
    expect(store.statistics().stored).toBeLessThanOrEqual(numPages);
  };
  const same = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((byte, i) => byte === b[i]);

  test('a file that ends early is refused, wherever it ends, and so is one that goes on', async () => {
    const file = await fileOf();
    for (let length = 0; length < file.length; length++) await outcomes(file.subarray(0, length), 10);
    await outcomes(Uint8Array.of(...file, 0), 11);
  });

  test('a file with any one byte changed is refused', async () => {
    const file = await fileOf();
    for (let at = 0; at < file.length; at++) {
      const changed = file.slice();
      changed[at] ^= 1 << (at % 8);
      await outcomes(changed, 10);
    }
    await fc.assert(
      fc.asyncProperty(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const changed = file.slice();
        changed[at] ^= flip;
        await outcomes(changed, 10);
      }),
      { numRuns: 300 },
    );
  });

  test('pages that changed places are refused', async () => {
    const file = await fileOf({ encoding: { compress: false } });
    const pageBytes = 16 + 8 + layout.groups[0].pageBytes;
    const total = layout.groups.reduce((sum, group, g) => sum + [5, 3, 1, 2][g] * (16 + 8 + group.pageBytes), 0);
    const first = file.length - total;
    const changed = file.slice();
    changed.set(file.subarray(first, first + pageBytes), first + pageBytes);
    changed.set(file.subarray(first + pageBytes, first + 2 * pageBytes), first);
    await outcomes(changed, 0);
  });
});

describe('a liar who can make sums', () => {
  test.each<[string, (header: Record<string, unknown>) => void]>([
    ['no groups', (header) => (header.groups = [])],
    [
      'no group that is there',
      (header) => {
        for (const group of header.groups as { included: boolean }[]) group.included = false;
      },
    ],
    ['too many groups', (header) => (header.groups = new Array(2000).fill((header.groups as unknown[])[0]))],
    ['a private group', (header) => ((header.groups as { lifecycle: { policy: string } }[])[0].lifecycle.policy = 'private')],
    ['pages of no bytes', (header) => ((header.groups as { pageBytes: number }[])[0].pageBytes = 0)],
    ['half a byte', (header) => ((header.groups as { pageBytes: number }[])[0].pageBytes = 0.5)],
    ['a window of nothing', (header) => ((header.groups as { lifecycle: { windowSize: number } }[])[1].lifecycle.windowSize = 0)],
    ['a lifecycle that is none', (header) => ((header.groups as { lifecycle: unknown }[])[0].lifecycle = null)],
    ['blocks of no tokens', (header) => (header.tokensPerBlock = 0)],
    ['half a block', (header) => (header.tokensPerBlock = 7)],
    ['a digest behind the end', (header) => (header.digests = [[20, 'ab'.repeat(32)]])],
    [
      'digests out of order',
      (header) =>
        (header.digests = [
          [3, 'ab'.repeat(32)],
          [3, 'ab'.repeat(32)],
        ]),
    ],
    ['a LoRA beyond 64 bits', (header) => (header.loraId = '18446744073709551616')],
    ['a key of another length', (header) => (header.key = 'abc')],
    [
      'a field missing',
      (header) => {
        delete header.salted;
      },
    ],
  ])('is refused with %s', async (_, change) => {
    const error = await refusal(inspectPrefix(withHeader(await fileOf(), change)));
    expect(error.code).toBe('prefix-file-damaged');
  });

  test('is refused with tokens that are not those of the key, before anything is stored', async () => {
    const store = new MemoryPageStore();
    const error = await refusal(
      importPrefix(
        withHeader(await fileOf(), (header) => (header.key = 'ab'.repeat(32))),
        { store, layout },
      ),
    );
    expect([error.code, store.statistics().stored]).toEqual(['prefix-file-damaged', 0]);
  });

  test('gets no memory for what is not there, whatever it says', async () => {
    const file = await fileOf();
    for (const [json, tokens] of [
      [0xffffffff, 5],
      [100, 0xffffffff],
      [2 ** 21, 2 ** 21],
    ]) {
      const error = await refusal(inspectPrefix(resealed(file.slice(), json, tokens)));
      expect(error.code).toMatch(/prefix-file-(damaged|too-large)/);
    }
    const many = await refusal(
      inspectPrefix(withHeader(file, (header) => ((header.groups as { pageBytes: number }[])[0].pageBytes = 0xffffffff))),
    );
    expect(many.code).toBe('prefix-file-too-large');
  });
});
