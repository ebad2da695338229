import { expect, test } from 'vitest';
import { GpuSetupError } from './gpu-setup-error.ts';
import { readTar } from './tar.ts';

interface Entry {
  path: string;
  content?: string;
  type?: string;
  mode?: string;
  size?: string;
}

/** An archive as the ustar format lays it out, with the fields that readers look at. */
function archive(...entries: Entry[]): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (const { path, content = '', type = '0', mode = '0000644', size } of entries) {
    const header = new Uint8Array(512);
    const put = (text: string, offset: number) => header.set(new TextEncoder().encode(text), offset);
    put(path, 0);
    put(mode, 100);
    put(size ?? content.length.toString(8).padStart(11, '0'), 124);
    put(type, 156);
    put('ustar', 257);
    const body = new Uint8Array(Math.ceil(content.length / 512) * 512);
    body.set(new TextEncoder().encode(content));
    blocks.push(header, body);
  }
  return Buffer.concat([...blocks, new Uint8Array(1024)]);
}

test('files come with their path, bytes and mode; folders are left out', () => {
  const long = 'x'.repeat(513);
  const files = readTar(
    archive({ path: 'lib/', type: '5' }, { path: 'lib/a.so', content: long, mode: '0000755' }, { path: 'b.json', content: '{}' }),
  );
  expect(files.map(({ path, executable }) => [path, executable])).toEqual([
    ['lib/a.so', true],
    ['b.json', false],
  ]);
  expect(files.map(({ bytes }) => new TextDecoder().decode(bytes))).toEqual([long, '{}']);
});

test('no entry leaves its folder', () => {
  expect(readTar(archive({ path: 'a/..b/c..' }))).toHaveLength(1);
  for (const path of ['../a', 'a/../../b', '/etc/a', 'a/./b', 'a//b', 'a\\b', 'c:a', '..']) {
    expect(() => readTar(archive({ path })), path).toThrow('outside its folder');
  }
});

test('links and devices are refused', () => {
  for (const type of ['1', '2', '3', '4', '6', 'x', 'L']) {
    expect(() => readTar(archive({ path: 'a', type })), type).toThrow('only files and folders');
  }
});

test('a damaged archive is refused', () => {
  const whole = archive({ path: 'a', content: 'abc' });
  expect(readTar(whole)).toHaveLength(1);
  expect(() => readTar(whole.subarray(0, 513))).toThrow('ends early');
  expect(() => readTar(whole.subarray(0, 1024))).toThrow('its end is missing');
  expect(() => readTar(new Uint8Array(0))).toThrow(GpuSetupError);
  expect(() => readTar(archive({ path: 'a', size: '-1' }))).toThrow('no readable size');
});
