import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodePrompt, encodePrompt } from './prompt-body.ts';

const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

it('a prompt is after its way what it was before', () => {
  const prompts = fc.record({
    prompt: fc.array(u32, { minLength: 1, maxLength: 50 }).map((tokens) => Uint32Array.from(tokens)),
    turnBorders: fc.array(u32, { maxLength: 5 }),
    publish: fc.boolean(),
    priority: fc.integer({ min: -5, max: 5 }),
    scope: fc.option(fc.record({ salt: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }), { nil: undefined }),
  });
  fc.assert(
    fc.property(prompts, (prompt) => {
      expect(decodePrompt(encodePrompt(prompt))).toEqual(prompt);
    }),
  );
});

it('what no worker says is refused for good', () => {
  const sound = JSON.parse(encodePrompt({ prompt: Uint32Array.of(1, 2) }));
  const bodies = [
    '',
    '[]',
    'null',
    ...[
      { tokens: '' },
      { tokens: 'AAA=' },
      { tokens: '****' },
      { turnBorders: [-1] },
      { turnBorders: [0.5] },
      { publish: 1 },
      { priority: 'high' },
      { scope: { salt: '-1' } },
      { scope: null },
    ].map((change) => JSON.stringify({ ...sound, ...change })),
  ];
  for (const body of bodies) expect(() => decodePrompt(body), body).toThrow(expect.objectContaining({ code: 'job-refused' }));
});
