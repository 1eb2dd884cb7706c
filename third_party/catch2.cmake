# Catch2: the tests. 2 and 3 both work: tests/catch.h hides the difference from the tests, the rest is hidden here.
ebb_dependency(Catch2 2.13 TARGET Catch2::Catch2 DEBIAN catch2
               GIT https://github.com/catchorg/Catch2.git TAG v3.5.2
               OPTIONS CATCH_INSTALL_DOCS=OFF CATCH_INSTALL_EXTRAS=OFF)
if(EBB_Catch2_ORIGIN STREQUAL download OR Catch2_VERSION VERSION_GREATER_EQUAL 3)
  set(EBB_CATCH_MAJOR 3)
else()
  set(EBB_CATCH_MAJOR 2)
endif()
