import { describe, expect, test } from 'vitest';
import { lifecycleId } from '../lifecycle/lifecycle.ts';
import { AmbiguousLayerError } from './ambiguous-layer-error.ts';
import { BufferwiseError } from './bufferwise-error.ts';
import { ConfigError } from './config-error.ts';
import { PresetError } from './preset-error.ts';
import { ReuseSelectionError } from './reuse-selection-error.ts';
import { StateError } from './state-error.ts';
import { UnknownBufferError } from './unknown-buffer-error.ts';
import { UnknownLifecycleError } from './unknown-lifecycle-error.ts';

const errors: [name: string, code: string, error: BufferwiseError][] = [
  ['BufferwiseError', 'some-code', new BufferwiseError('some-code', 'what and where')],
  [
    'ConfigError',
    'config-missing',
    new ConfigError([{ code: 'config-missing', path: 'tiers', value: undefined, message: 'is missing.' }]),
  ],
  [
    'PresetError',
    'preset-not-causal',
    new PresetError([{ code: 'preset-not-causal', path: 'x', value: true, message: 'sees later tokens.' }]),
  ],
  ['AmbiguousLayerError', 'ambiguous-layer', new AmbiguousLayerError(3, [lifecycleId(0), lifecycleId(2)])],
  ['UnknownBufferError', 'unknown-layer', new UnknownBufferError(3, 'key', [])],
  ['UnknownBufferError', 'unknown-buffer', new UnknownBufferError(3, 'key', ['value'])],
  ['UnknownLifecycleError', 'unknown-lifecycle', new UnknownLifecycleError(3, 2)],
  ['ReuseSelectionError', 'selection-not-optional', new ReuseSelectionError('selection-not-optional', 'rebuiltGroups', 0)],
  ['StateError', 'not-active', new StateError('not-active', 'resize needs an active request: resume it first.')],
];

describe('an error', () => {
  test.each(errors)('%s %s has its name and code, and bears the mark', (name, code, error) => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code });
    expect(error.message.length).toBeGreaterThan(10);
    expect(BufferwiseError.isInstance(error)).toBe(true);
  });

  test('of another installed copy is known by its mark', () => {
    const other = Object.assign(new Error('from elsewhere'), { code: 'x', [Symbol.for('bufferwise.error')]: true });
    expect(other).not.toBeInstanceOf(BufferwiseError);
    expect(BufferwiseError.isInstance(other)).toBe(true);
  });

  test.each([undefined, null, 'bufferwise.error', new Error('plain'), { code: 'config-missing' }])('is not %o', (value) => {
    expect(BufferwiseError.isInstance(value)).toBe(false);
  });

  test('keeps its cause', () => {
    const cause = new Error('below');
    expect(new StateError('x', 'above', { cause }).cause).toBe(cause);
    expect(new StateError('x', 'above')).not.toHaveProperty('cause');
  });
});

test.each([
  ['selection-unknown-group', 'optionalReuseGroups', 9, /optionalReuseGroups: .*group 9/],
  ['selection-not-optional', 'rebuiltGroups', 0, /rebuiltGroups: group 0 is not optional/],
  ['selection-incomplete', 'optionalReuseGroups', 1, /group 1 is not complete.*reuseStatus/],
  ['selection-both-lists', 'rebuiltGroups', 1, /group 1 is selected/],
  ['selection-not-first-resume', 'rebuiltGroups', null, /rebuiltGroups: only the first resume/],
] as const)('a refused selection says why: %s', (code, list, groupId, words) => {
  const error = new ReuseSelectionError(code, list, groupId);
  expect(error).toMatchObject({ code, list, groupId });
  expect(error.message).toMatch(words);
});
