import { expect, test } from 'vitest';
import { readS3List } from './s3-list.ts';

const list = (inside: string) => `<?xml version="1.0"?><ListBucketResult xmlns="urn:x">${inside}</ListBucketResult>`;
const object = (key: string) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`;

test('reads the keys, and where to go on', () => {
  const more = '<IsTruncated>true</IsTruncated><NextContinuationToken>a+b&amp;&#61;&#x3D;</NextContinuationToken>';
  expect(readS3List(list(`${more}${object('p/a')}${object('p/b.c-d_e')}`))).toEqual({
    keys: ['p/a', 'p/b.c-d_e'],
    token: 'a+b&==',
  });
  expect(readS3List(list('<IsTruncated>false</IsTruncated>'))).toEqual({ keys: [], token: null });
});

test('takes nothing else for a list', () => {
  expect(readS3List('')).toBeNull();
  expect(readS3List('<Error><Code>AccessDenied</Code></Error>')).toBeNull();
  expect(readS3List(list('<IsTruncated>true</IsTruncated>'))).toBeNull();
});
