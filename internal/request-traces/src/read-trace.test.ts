import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readTrace } from './read-trace.ts';
import { TraceError } from './trace-error.ts';
import { tokenOfHashId } from './trace-request.ts';

const bytes = (...lines: unknown[]) =>
  new TextEncoder().encode(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));

describe('tokens of hash ids', () => {
  // From the description of the traces.
  it.each([
    [0, 0, 0],
    [0, 1, 30556],
    [1, 0, 24592],
    [46, 511, 25127],
    [182789, 17, 5973],
    [4294967295, 63, 22956],
  ])('block %i, offset %i', (id, offset, token) => expect(tokenOfHashId(id, offset)).toBe(token));
});

describe('a trace', () => {
  it('of Mooncake names blocks of 512 tokens, the last one cut', () => {
    const { format, requests } = readTrace(bytes({ timestamp: 0, input_length: 600, output_length: 0, hash_ids: [7, 9] }));
    expect(format).toBe('mooncake');
    expect(requests).toHaveLength(1);
    const [request] = requests;
    expect([request.promptLength, request.outputLength]).toEqual([600, 1]);
    const prompt = request.prompt();
    expect([...prompt.subarray(0, 5)]).toEqual([14239, 26258, 13874, 1046, 26965]);
    expect(prompt[512]).toBe(tokenOfHashId(9, 0));
    expect(request.outputToken(3)).toBe(tokenOfHashId(0x40000000, 3));
  });

  it('of Claude Code goes turn by turn over sessions, without sub-agents', () => {
    const turn = (first: number, count: number, type = 'n') => ({ type, in: 64 * count + 5, out: 2, hash_ids: [first, count] });
    const { format, requests } = readTrace(
      bytes(
        { id: 'trace_0010', requests: [turn(1, 2), { ...turn(1, 9), type: 'subagent' }, turn(1, 3)] },
        { id: 'trace_0015', requests: [turn(1, 4), { type: 'n', in: 10, out: 1, hash_ids: [] }] },
      ),
    );
    expect(format).toBe('claude-code');
    expect(requests.map(({ promptLength }) => promptLength)).toEqual([2 * 64, 4 * 64, 3 * 64]);
    expect(requests[0].prompt()[0]).toBe(tokenOfHashId(10 * 2 ** 20 + 1, 0));
    expect(requests[1].prompt()[64]).toBe(tokenOfHashId(15 * 2 ** 20 + 2, 0));
  });

  it('of LMCache shares the beginning of an earlier line, and skips empty ones', () => {
    const { format, requests } = readTrace(
      bytes(
        { prefix_of: -1, prefix_length: 0, input: [5, 6, 7], output: [8] },
        { prefix_of: -1, prefix_length: 0, input: [], output: [] },
        { prefix_of: 0, prefix_length: 2, input: [9], output: [1, 2] },
      ),
    );
    expect(format).toBe('lmcache');
    expect(requests.map((each) => [...each.prompt()])).toEqual([
      [5, 6, 7],
      [5, 6, 9],
    ]);
    expect(requests[1].outputToken(1)).toBe(2);
  });

  it('of Azure has lengths alone: no two prompts are alike', () => {
    const { format, requests } = readTrace(
      bytes('TIMESTAMP,ContextTokens,GeneratedTokens', '2023-11-16 18:17:03,40,10', '2023-11-16 18:17:04,40,0', ''),
    );
    expect(format).toBe('azure');
    expect(requests.map(({ promptLength, outputLength }) => [promptLength, outputLength])).toEqual([
      [40, 10],
      [40, 1],
    ]);
    expect([...requests[0].prompt()]).not.toEqual([...requests[1].prompt()]);
  });

  it('may be compressed', () => {
    expect(readTrace(gzipSync(bytes({ input: [1], output: [2] }))).requests).toHaveLength(1);
  });
});

describe('what is no trace', () => {
  it.each([
    ['text', ['hello'], /no known trace/],
    ['an empty file', [''], /no known trace/],
    ['a line that is no JSON', [{ input: [1] }, '{'], /line 2 is not JSON/],
    ['a list where an object belongs', [{ input: [1] }, 'null'], /line 2 is no JSON object/],
    ['a length that is none', [{ input_length: -1, hash_ids: [1] }], /line 1: "input_length" must be/],
    ['more tokens than blocks', [{ input_length: 513, hash_ids: [1] }], /"hash_ids" names 1 blocks/],
    ['ids that are none', [{ input: [1, 'a'] }], /"input" must be a list of ids/],
    ['a prefix of a later line', [{ input: [1], prefix_of: 4, prefix_length: 1 }], /names no earlier line with 1 tokens/],
    ['lengths that are none', ['TIMESTAMP,ContextTokens,GeneratedTokens', 'x,y,z'], /line 2 has no lengths/],
    ['a trace without requests', ['TIMESTAMP,ContextTokens,GeneratedTokens'], /has no requests/],
  ])('%s', (_, lines, message) => {
    expect(() => readTrace(bytes(...lines))).toThrow(TraceError);
    expect(() => readTrace(bytes(...lines))).toThrow(message);
  });

  it('damaged compression', () => {
    expect(() => readTrace(Uint8Array.of(0x1f, 0x8b, 1, 2, 3))).toThrow(/the file is damaged/);
  });
});
