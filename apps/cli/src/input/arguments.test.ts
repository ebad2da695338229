import { describe, expect, it } from 'vitest';
import { UsageError } from '../cli-error.ts';
import { byteSize, duration, wholeNumber, wholeNumbers } from './arguments.ts';
import { parsePolicies } from './policies.ts';

describe('bytes', () => {
  it.each([
    ['1', 1],
    ['512', 512],
    ['4KiB', 4096],
    ['8GiB', 8 * 2 ** 30],
    ['8 gib', 8 * 2 ** 30],
    ['1.5g', 1.5 * 2 ** 30],
    ['64m', 64 * 2 ** 20],
    ['8GB', 8e9],
    ['2TiB', 2 ** 41],
  ])('%s', (text, bytes) => expect(byteSize('memory', text)).toBe(bytes));

  it.each(['', '0', '-1', '1e3', 'GiB', '8XiB', '8GiBs', '1025TiB', 'toString', '1 toString'])('are not %j', (text) => {
    expect(() => byteSize('memory', text)).toThrow(UsageError);
  });
});

describe('whole numbers', () => {
  it('are digits within bounds', () => {
    expect(wholeNumber('n', '12', { min: 1, max: 12 })).toBe(12);
    for (const text of ['', '0', '13', '1.5', '1e1', ' 1'])
      expect(() => wholeNumber('n', text, { min: 1, max: 12 })).toThrow(UsageError);
  });

  it('of a list are sorted and named once', () => expect(wholeNumbers('n', '9, 3,9', { min: 1, max: 12 })).toEqual([3, 9]));
});

describe('times', () => {
  it.each([
    ['30', 30_000],
    ['30s', 30_000],
    ['500ms', 500],
    ['1.5 m', 90_000],
    ['2h', 7_200_000],
  ])('%s', (text, milliseconds) => expect(duration('timeout', text, { max: 1e9 })).toBe(milliseconds));

  it.each(['', '0', '0.4ms', '-1', '1d', '1e3', 's', '30 seconds', 'toString'])('are not %j', (text) => {
    expect(() => duration('timeout', text, { max: 1e9 })).toThrow(UsageError);
  });

  it('end somewhere', () => expect(() => duration('timeout', '2h', { max: 3_600_000 })).toThrow(UsageError));
});

describe('policies', () => {
  it('are auto, or by role and layer', () => {
    expect(parsePolicies('auto')).toBe('auto');
    expect(parsePolicies('value=optional, 3.key=private')).toEqual({ value: 'optional', '3.key': 'private' });
  });

  it.each(['', 'value', 'value=', '=optional', 'value=kept', 'value=optional=private', 'a=optional,'])('are not %j', (text) => {
    expect(() => parsePolicies(text)).toThrow(UsageError);
  });
});
