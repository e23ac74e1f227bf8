// Builds ../dist: minified, gzipped at a fixed level without a time stamp, with
// the checksums of the plain contents and the licences of what is inside.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { analyzeMetafile, build } from 'esbuild';

const out = new URL('../dist/', import.meta.url).pathname;

// GraphiQL's style sheet carries two fonts as data URLs, more than half of its
// weight; the page uses the fonts of the system instead.
const systemFonts = {
  name: 'system-fonts',
  setup(builder) {
    builder.onLoad({ filter: /node_modules\/@?graphiql\/.*\.css$/ }, ({ path }) => ({
      loader: 'css',
      contents: readFileSync(path, 'utf8').replace(/@font-face\s*{[^}]*}/g, ''),
    }));
  },
};

const common = {
  bundle: true,
  minify: true,
  write: false,
  outdir: out,
  metafile: true,
  legalComments: 'none',
  target: 'es2022',
  loader: { '.ttf': 'file' },
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
};

const page = await build({
  ...common,
  plugins: [systemFonts],
  entryPoints: { graphiql: 'main.jsx' },
  format: 'esm',
  splitting: true,
  jsx: 'automatic',
  chunkNames: 'chunk-[hash]',
  assetNames: '[name]-[hash]',
});
const workers = await build({
  ...common,
  entryPoints: {
    'editor.worker': 'monaco-editor/esm/vs/editor/editor.worker.js',
    'json.worker': 'monaco-editor/esm/vs/language/json/json.worker.js',
    'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
  },
  format: 'iife',
});

function packagesOf(...metafiles) {
  const names = new Set();
  for (const meta of metafiles) {
    for (const file of Object.keys(meta.inputs)) {
      const found = file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/);
      if (found) names.add(found[1]);
    }
  }
  return [...names].sort();
}

function licenceOf(name) {
  const dir = join('node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(dir, 'package.json')));
  const file = readdirSync(dir).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(dir, file), 'utf8').trim() : '(no licence file in the package)';
  return `${name} ${version}: ${license}\n\n${text}\n`;
}

if (process.argv.includes('--analyze')) console.log(await analyzeMetafile(page.metafile));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const licences = packagesOf(page.metafile, workers.metafile).map(licenceOf).join(`\n${'-'.repeat(80)}\n\n`);
// Style sheets of lazily loaded chunks repeat what graphiql.css has.
const wanted = ({ path }) => !/chunk-[^/]*\.css$/.test(path);
const files = [...page.outputFiles, ...workers.outputFiles].filter(wanted).map((file) => [file.path.slice(out.length), Buffer.from(file.contents)]);
files.push(['LICENSES.txt', Buffer.from(licences)]);
files.sort(([a], [b]) => (a < b ? -1 : 1));

let sums = '';
for (const [name, contents] of files) {
  const packed = gzipSync(contents, { level: 9 });
  writeFileSync(join(out, `${name}.gz`), packed);
  sums += `${createHash('sha256').update(contents).digest('hex')}  ${name}\n`;
  console.log(`${name.padEnd(40)} ${contents.length.toString().padStart(9)} ${packed.length.toString().padStart(9)} gz`);
}
writeFileSync(join(out, 'SHA256SUMS'), sums);
