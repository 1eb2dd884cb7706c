# What is written by protobuf, and the messages for it: .proto files with those fields alone that ebb writes, compiled to
# <name.pb.h>.
include(third_party/protobuf.cmake)
set(protos core/files/tensorboard.proto graph/onnx/onnx.proto)
set(with_protobuf core/files/summary_writer.cpp graph/onnx/write.cpp)
set(without_protobuf core/memory/without_protobuf.cpp graph/onnx/write_without_protobuf.cpp)

if(TARGET ebb::protobuf)
  set(EBB_PROTO_DIR ${CMAKE_CURRENT_BINARY_DIR}/protos)
  file(MAKE_DIRECTORY ${EBB_PROTO_DIR})
  set(includes "")
  foreach(proto IN LISTS protos)
    cmake_path(GET proto STEM name)
    cmake_path(GET proto PARENT_PATH folder)
    add_custom_command(OUTPUT ${EBB_PROTO_DIR}/${name}.pb.h ${EBB_PROTO_DIR}/${name}.pb.cc DEPENDS ${proto} VERBATIM
                       COMMAND ${EBB_PROTOC} -I ${CMAKE_CURRENT_SOURCE_DIR}/${folder} --cpp_out ${EBB_PROTO_DIR}
                               ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    target_sources(ebb PRIVATE ${EBB_PROTO_DIR}/${name}.pb.h)
    string(APPEND includes "#include <${name}.pb.cc>\n")
  endforeach()
  file(CONFIGURE OUTPUT ${EBB_PROTO_DIR}/protos.cpp CONTENT "${includes}")  # compiled as one
  target_sources(ebb PRIVATE ${EBB_PROTO_DIR}/protos.cpp)
  target_include_directories(ebb SYSTEM PRIVATE ${EBB_PROTO_DIR})
  target_link_libraries(ebb PRIVATE ebb::protobuf)
  set_source_files_properties(${with_protobuf} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_source_files_properties(${without_protobuf} PROPERTIES HEADER_FILE_ONLY ON)
else()
  set_source_files_properties(${with_protobuf} PROPERTIES HEADER_FILE_ONLY ON)
endif()
