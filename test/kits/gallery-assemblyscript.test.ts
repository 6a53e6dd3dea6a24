import { testSamples } from '../support/gallery.ts';

testSamples('AssemblyScript', 'as');
