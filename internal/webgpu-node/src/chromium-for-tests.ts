import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder, ensureUnpacked } from './cache-folder.ts';
import { GpuSetupError } from './gpu-setup-error.ts';
import { withFolder } from './software-vulkan.ts';
import { findSparticuzPackage } from './sparticuz-package.ts';
import { readTar, type TarFile } from './tar.ts';

/** What playwright's `launch` takes to start a browser with WebGPU and OPFS. */
export interface ChromiumLaunch {
  executablePath: string;
  args: string[];
  /** The whole environment of the browser: this process's, and what the browser needs besides. */
  env: Record<string, string>;
}

/** WebGPU on the software device; quiet on the network. */
const ARGS = [
  '--headless',
  '--no-sandbox',
  '--no-zygote',
  '--disable-dev-shm-usage',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-features=Vulkan',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let launch: Promise<ChromiumLaunch> | undefined;

/**
 * A headless Chromium for tests, unpacked from npm into the user's cache folder at its first use on a machine (some 190 MB).
 * `BUFFERWISE_CHROMIUM` names another executable to use instead. Answered once for each process.
 *
 * @throws {GpuSetupError} `no-software-gpu` on another platform than linux-x64 while `BUFFERWISE_CHROMIUM` is not set, `gpu-unpack`
 * @example const browser = await chromium.launch(await chromiumForTests());
 */
export function chromiumForTests(): Promise<ChromiumLaunch> {
  launch ??= findChromium();
  return launch;
}

async function findChromium(): Promise<ChromiumLaunch> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const own = process.env.BUFFERWISE_CHROMIUM;
  if (own) {
    if (!existsSync(own)) throw new GpuSetupError('gpu-unpack', `BUFFERWISE_CHROMIUM names ${own}, which does not exist.`);
    return { executablePath: own, args: [...ARGS], env };
  }

  const source = await findSparticuzPackage();
  const folder = join(await cacheFolder(), `chromium-${source.version}`);
  const executablePath = join(folder, 'chromium');
  // Chromium loads its software device from the folder it lies in.
  await ensureUnpacked(folder, ['chromium', 'libvk_swiftshader.so', 'libvulkan.so.1', 'vk_swiftshader_icd.json'], async () => {
    const executable: TarFile = { path: 'chromium', executable: true, bytes: await source.inflate('chromium') };
    return [executable, ...readTar(await source.inflate('swiftshader.tar'))];
  });
  // The driver of the processes that test on the GPU without a browser is not the browser's.
  delete env.VK_ICD_FILENAMES;

  if (await lacksLibraries(executablePath)) {
    const libraries = join(await cacheFolder(), `chromium-libraries-${source.version}`);
    await ensureUnpacked(libraries, ['lib/libnss3.so', 'lib/libnspr4.so', 'lib/libexpat.so.1'], async () =>
      readTar(await source.inflate('al2023.tar')),
    );
    env.LD_LIBRARY_PATH = withFolder(join(libraries, 'lib'), env.LD_LIBRARY_PATH);
  }
  if (!existsSync('/etc/fonts/fonts.conf') && env.FONTCONFIG_PATH === undefined) {
    const fonts = join(await cacheFolder(), `chromium-fonts-${source.version}`);
    await ensureUnpacked(fonts, ['fonts.conf'], async () => {
      const files = readTar(await source.inflate('fonts.tar')).filter((file) => file.path !== 'fonts.conf');
      return [...files, { path: 'fonts.conf', executable: false, bytes: new TextEncoder().encode(fontsConfig(fonts)) }];
    });
    env.FONTCONFIG_PATH = fonts;
  }
  return { executablePath, args: [...ARGS], env };
}

/** Whether the system has not all the libraries that the executable links. */
async function lacksLibraries(executablePath: string): Promise<boolean> {
  try {
    const { stdout } = await promisify(execFile)('ldd', [executablePath]);
    return stdout.includes('not found');
  } catch {
    return true;
  }
}

/** The configuration in the archive names the folders of another system. */
function fontsConfig(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}/fonts</dir>
  <cachedir>${folder}/cache</cachedir>
</fontconfig>
`;
}
