import { howToInstall, isInstalled } from '../input/installed-packages.ts';
import type { Finding } from './finding.ts';

/** What is not installed with the command: large, made for one platform, or of use to some only. */
const PACKAGES = [
  {
    name: 'webgpu',
    with: 'WebGPU in Node',
    without: 'demo, generate, serve and prefix export do not run; plan, replay and completion do',
  },
  {
    name: '@sparticuz/chromium',
    with: 'a software device where there is no GPU (Linux on x64)',
    without: 'nothing stands in for a GPU where there is none',
  },
  { name: 'redis', with: 'stores in Redis and Valkey', without: '--store redis://… is refused; folders and buckets work' },
] as const;

/** What is installed beside the command. @param isThere says it of a package */
export function checkPackages(isThere: (name: string) => boolean = isInstalled): Finding[] {
  return PACKAGES.map((each): Finding => {
    const found = isThere(each.name);
    return {
      name: each.name === '@sparticuz/chromium' ? 'software device' : each.name,
      state: found ? 'ok' : 'warn',
      found: found ? 'installed' : `the npm package ${each.name} is not installed`,
      means: found ? each.with : each.without,
      mend: found ? null : howToInstall(each.name),
    };
  });
}
